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
