#!/bin/sh
# fleet northwind, cluster hpc
# Accounts, QOS and their limits. Run it as an administrator of Slurm:
# 1. `accounting.sh qos` before slurmctld reads slurm.conf. It adds QOS and does nothing else:
#    from 25.11 on slurmctld ends over a partition with a QOS that it does not know.
# 2. `accounting.sh` once slurmctld has registered with slurmdbd, which then knows what can be
#    limited. Run it again after each change; then run `scontrol reconfigure`.
# It adds what is missing and sets what is stated here. It deletes nothing, and adds no users:
# `sacctmgr add user NAME account=TEAM` does.
set -eu

cluster=hpc

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
add_qos production
add_qos interactive
add_qos batch
add_qos research.pretrain
add_qos research.pretrain.borrow
add_qos nlp.pretrain
add_qos vision.pretrain
add_qos vision.pretrain.borrow

[ "${1:-}" != qos ] || exit 0

set_qos production Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=batch
set_qos interactive Priority=500 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=1 MaxWall=08:00:00 Preempt=batch
set_qos batch Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing batch
set_qos research.pretrain Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=64,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=research.pretrain.borrow,vision.pretrain.borrow
set_qos research.pretrain.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=127,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing research.pretrain.borrow
set_qos nlp.pretrain Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=64,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=research.pretrain.borrow,vision.pretrain.borrow
set_qos vision.pretrain Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=96,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=research.pretrain.borrow,vision.pretrain.borrow
set_qos vision.pretrain.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:h100=-1,gres/gpu:a100=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing vision.pretrain.borrow

# Accounts: a parent before its children.
add_account research root
set_account research Fairshare=3 QOS=research.pretrain,research.pretrain.borrow,batch,interactive,production DefaultQOS=research.pretrain
add_account nlp research
set_account nlp Fairshare=1 QOS=nlp.pretrain,research.pretrain.borrow,batch,interactive,production DefaultQOS=nlp.pretrain
add_account vision root
set_account vision Fairshare=2 QOS=vision.pretrain,vision.pretrain.borrow,batch,interactive,production DefaultQOS=vision.pretrain
add_account product root
set_account product Fairshare=1 QOS=batch,interactive,production DefaultQOS=batch
