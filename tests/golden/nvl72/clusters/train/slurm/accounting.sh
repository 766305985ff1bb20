#!/bin/sh
# fleet nvl72, cluster train
# Accounts, QOS and their limits. Run it as an administrator of Slurm:
# 1. `accounting.sh qos` before slurmctld reads slurm.conf. It adds QOS and does nothing else:
#    from 25.11 on slurmctld ends over a partition with a QOS that it does not know.
# 2. `accounting.sh` once slurmctld has registered with slurmdbd, which then knows what can be
#    limited. Run it again after each change; then run `scontrol reconfigure`.
# It adds what is missing and sets what is stated here. It deletes nothing, and adds no users:
# `sacctmgr add user NAME account=TEAM` does.
set -eu

cluster=train

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
add_qos standard
add_qos spare
add_qos pretraining.pretrain
add_qos pretraining.pretrain.borrow
add_qos research.pretrain.borrow

[ "${1:-}" != qos ] || exit 0

set_qos production Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:gb200=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=spare
set_qos standard Priority=500 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:gb200=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=spare
set_qos spare Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:gb200=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing spare
set_qos pretraining.pretrain Priority=1000 Flags=DenyOnLimit GrpTRES=gres/gpu=72,gres/gpu:gb200=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1 Preempt=pretraining.pretrain.borrow,research.pretrain.borrow
set_qos pretraining.pretrain.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=-1,gres/gpu:gb200=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing pretraining.pretrain.borrow
set_qos research.pretrain.borrow Priority=100 Flags=DenyOnLimit GrpTRES=gres/gpu=72,gres/gpu:gb200=-1 MaxTRESPerJob=gres/gpu=-1 MaxWall=-1
preempts_nothing research.pretrain.borrow

# Accounts: a parent before its children.
add_account pretraining root
set_account pretraining Fairshare=3 QOS=pretraining.pretrain,pretraining.pretrain.borrow,spare,standard,production DefaultQOS=pretraining.pretrain
add_account serving root
set_account serving Fairshare=3 QOS=spare,standard,production DefaultQOS=spare
add_account research root
set_account research Fairshare=1 QOS=research.pretrain.borrow,spare,standard,production DefaultQOS=research.pretrain.borrow
