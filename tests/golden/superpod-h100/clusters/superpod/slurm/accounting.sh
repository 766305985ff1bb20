#!/bin/sh
# fleet superpod-h100, cluster superpod
# Accounts, QOS and their limits. Run it as an administrator of Slurm:
# 1. `accounting.sh qos` before slurmctld reads slurm.conf. It adds QOS and does nothing else:
#    from 25.11 on slurmctld ends over a partition with a QOS that it does not know.
# 2. `accounting.sh` once slurmctld has registered with slurmdbd, which then knows what can be
#    limited. Run it again after each change; then run `scontrol reconfigure`.
# It adds what is missing and sets what is stated here. It deletes nothing, and adds no users:
# `sacctmgr add user NAME account=TEAM` does.
set -eu

cluster=superpod

# What there is already: adding it again is an error of sacctmgr.
line='
'
all_qos=$line$(sacctmgr -nP show qos format=name)$line
preempting_qos=$line$(sacctmgr -nP show qos format=name,preempt | sed -n 's/|..*//p')$line
all_accounts=$line$(sacctmgr -nP show assoc where "cluster=$cluster" format=account)$line

add_qos() {
    case $all_qos in
    *"$line$1$line"*) ;;
    *) sacctmgr -iQ add qos "$1" ;;
    esac
}

set_qos() {
    qos=$1
    shift
    sacctmgr -iQ modify qos where "name=$qos" set "$@"
}

# Emptying a list that is empty makes slurmdbd see a loop in it later.
preempts_nothing() {
    case $preempting_qos in
    *"$line$1$line"*) sacctmgr -iQ modify qos where "name=$1" set Preempt= ;;
    esac
}

add_account() {
    case $all_accounts in
    *"$line$1$line"*) ;;
    *) sacctmgr -iQ add account "$1" "cluster=$cluster" "parent=$2" ;;
    esac
}

set_account() {
    account=$1
    shift
    sacctmgr -iQ modify account where "cluster=$cluster" "name=$account" set "$@"
}

# QOS: first all of them, since one names others.
add_qos urgent
add_qos interactive
add_qos normal
add_qos scavenge
add_qos models.train.borrow
add_qos foundation.train
add_qos post-training.train
add_qos multimodal.train
add_qos multimodal.train.borrow
add_qos applied.train
add_qos applied.train.borrow
add_qos applied.debug
add_qos applied.debug.borrow
add_qos operations.train.borrow
add_qos operations.debug
add_qos operations.debug.borrow

[ "${1:-}" != qos ] || exit 0

set_qos urgent Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=scavenge
set_qos interactive Priority=800 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=8 MaxWall=12:00:00 Preempt=scavenge
set_qos normal Priority=500 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=scavenge
set_qos scavenge Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing scavenge
set_qos models.train.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=112,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing models.train.borrow
set_qos foundation.train Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=768,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=scavenge,models.train.borrow,multimodal.train.borrow,applied.train.borrow,operations.train.borrow
set_qos post-training.train Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=64,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=scavenge,models.train.borrow,multimodal.train.borrow,applied.train.borrow,operations.train.borrow
set_qos multimodal.train Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=64,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=scavenge,models.train.borrow,multimodal.train.borrow,applied.train.borrow,operations.train.borrow
set_qos multimodal.train.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=256,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing multimodal.train.borrow
set_qos applied.train Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=32,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=scavenge,models.train.borrow,multimodal.train.borrow,applied.train.borrow,operations.train.borrow
set_qos applied.train.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=96,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing applied.train.borrow
set_qos applied.debug Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=36,gres/gpu:h100=-1,gres/gpu:1g.10gb=28,gres/gpu:3g.40gb=8 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=applied.debug.borrow,operations.debug.borrow
set_qos applied.debug.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing applied.debug.borrow
set_qos operations.train.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=32,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing operations.train.borrow
set_qos operations.debug Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=7,gres/gpu:h100=-1,gres/gpu:1g.10gb=7,gres/gpu:3g.40gb=0 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=applied.debug.borrow,operations.debug.borrow
set_qos operations.debug.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:1g.10gb=-1,gres/gpu:3g.40gb=0 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing operations.debug.borrow

# Accounts: a parent before its children.
add_account models root
set_account models Fairshare=4 QOS=models.train.borrow,scavenge,normal,interactive,urgent DefaultQOS=models.train.borrow
add_account foundation models
set_account foundation Fairshare=3 QOS=foundation.train,models.train.borrow,scavenge,normal,interactive,urgent DefaultQOS=foundation.train
add_account post-training models
set_account post-training Fairshare=1 QOS=post-training.train,models.train.borrow,scavenge,normal,interactive,urgent DefaultQOS=post-training.train
add_account multimodal root
set_account multimodal Fairshare=2 QOS=multimodal.train,multimodal.train.borrow,scavenge,normal,interactive,urgent DefaultQOS=multimodal.train
add_account applied root
set_account applied Fairshare=1 QOS=applied.train,applied.train.borrow,applied.debug,applied.debug.borrow,scavenge,normal,interactive,urgent DefaultQOS=applied.train
add_account operations root
set_account operations Fairshare=1 QOS=operations.train.borrow,operations.debug,operations.debug.borrow,scavenge,normal,interactive,urgent DefaultQOS=operations.train.borrow
