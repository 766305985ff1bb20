#!/usr/bin/env bash
# fleet superpod-h100, cluster superpod
# Puts the GPU instances of this node where the fleet says, each at its own start. Instances that
# are right stay; the rest is destroyed, then created. Running it again changes nothing.
# mig-parted.yaml says the same by counts: let one of the two own a node, not both.
# Needs bash 4.4, nvidia-smi and flock.
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: fleetc-mig [--apply | --boot] [--drained] [--node NAME | --class NAME]

  (nothing)     say what would be done, and do nothing
  --apply       do it, if the node is drained and no process is on its GPUs
  --boot        as --apply, before the node's agent starts: the scheduler is not asked, and MIG mode is
                set on GPUs that lose it at a reboot and take it without a reset (Hopper and later)
  --drained     do not ask the scheduler: the node is drained
  --node NAME   this node is NAME; else SLURMD_NODENAME, NODE_NAME or the host name says so
  --class NAME  this node is of class NAME

It resets no GPU and reboots nothing. Without --boot it changes no MIG mode.
exit status: 0 as the fleet says, 1 it differs and nothing was to be done, 2 could not or must not
END
}

say() { printf 'fleetc-mig: %s\n' "$*"; }
refuse() {
    say "$*" >&2
    exit 2
}
run() {
    say "+ $*"
    "$@" || refuse "failed: $*"
}

apply=no boot=no drained=no asked_node='' asked_class=''
while (($# > 0)); do
    case $1 in
    --apply) apply=yes ;;
    --boot) apply=yes boot=yes ;;
    --drained) drained=yes ;;
    --node | --class)
        (($# > 1)) || refuse "$1 takes a name"
        if [[ $1 == --node ]]; then asked_node=$2; else asked_class=$2; fi
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) refuse "unknown argument $1: see --help" ;;
    esac
    shift
done
node=${asked_node:-${SLURMD_NODENAME:-${NODE_NAME:-}}}
short=$node
if [[ -z $node ]]; then
    node=$(uname -n)
    short=${node%%.*}
fi

# The table below calls these: a class, its nodes, its GPUs. Only the class of this node is kept.
class='' here=no mode_takes_reset=no device_ids='' gpus=0
products=() wanted_mode=() wanted=()

# class NAME MODE-TAKES-RESET DEVICE-IDS PRODUCT-NAME...
class() {
    reading=("$@")
    here=no
    if [[ -n $asked_class && $asked_class == "$1" ]]; then take; fi
}
take() {
    here=yes class=${reading[0]} mode_takes_reset=${reading[1]} device_ids=${reading[2]}
    products=("${reading[@]:3}")
}
# nodes PREFIX DIGITS FIRST LAST SUFFIX
nodes() {
    local name number
    if [[ -n $asked_class ]]; then return; fi
    for name in "$node" "$short"; do
        if (($2 == 0)); then
            if [[ $name == "$1" ]]; then take; fi
        elif [[ $name == "$1"*"$5" ]]; then
            number=${name#"$1"}
            number=${number%"$5"}
            if [[ $number =~ ^[0-9]{$2}$ ]] && ((10#$number >= $3 && 10#$number <= $4)); then
                take
            fi
        fi
    done
}
# gpu INDEX on|off PROFILE-ID:START:PROFILE...
gpu() {
    if [[ $here == yes ]]; then
        gpus=$((gpus + 1))
        wanted_mode[$1]=$2
        wanted[$1]="${*:3}"
    fi
}

# What the driver says: MIG mode of each GPU, GPU instances and compute instances.
declare -A current=() instance=() cover=() pieces=()
standing=()

rows() {
    local text
    text=$(nvidia-smi mig "$1" 2>&1) || case $text in
    'No '*' instances found'* | *'No MIG-enabled devices'*) return 0 ;;
    *) refuse "nvidia-smi mig $1: $text" ;;
    esac
    # A row of the table has MIG and a profile; the ids and the placement are its last columns.
    awk '$1 ~ /^[|]/ { gsub(/[|*]/, " "); for (i = 1; i <= NF; i++) if ($i == "MIG") { print; next } }' \
        <<<"$text"
}

read_gpus() {
    local text line index id now later product count=0 known
    text=$(nvidia-smi --query-gpu=index,pci.device_id,mig.mode.current,mig.mode.pending,name \
        --format=csv,noheader 2>&1) || refuse "nvidia-smi: $text"
    current=()
    while IFS=', ' read -r index id now later product; do
        [[ $index =~ ^[0-9]+$ ]] || refuse "nvidia-smi: $text"
        count=$((count + 1))
        [[ -n ${wanted_mode[$index]-} ]] || refuse "GPU $index is not in class $class"
        known=no
        for line in "${products[@]}"; do
            if [[ $line == "$product" ]]; then known=yes; fi
        done
        id=${id:0:6}
        if [[ ",${device_ids,,}," == *",${id,,},"* ]]; then known=yes; fi
        [[ $known == yes ]] || refuse "GPU $index is $product ($id): class $class has ${products[*]}"
        [[ $now == Enabled || $now == Disabled ]] || refuse "GPU $index says MIG mode $now"
        [[ $now == "$later" ]] ||
            refuse "GPU $index: MIG mode is $now and waits to be $later: reset the GPU or reboot the node"
        current[$index]=$now
    done <<<"$text"
    ((count == gpus)) ||
        refuse "the driver shows $count GPUs, class $class has $gpus: their numbers may be others"
}

read_instances() {
    local text fields gpu profile id place
    instance=() cover=() pieces=() standing=()
    text=$(rows -lgi)
    while read -ra fields; do
        if [[ -z ${fields[*]-} ]]; then continue; fi
        gpu=${fields[0]} place=${fields[-1]} id=${fields[-2]} profile=${fields[-3]}
        [[ "$gpu $profile $id $place" =~ ^[0-9]+\ [0-9]+\ [0-9]+\ [0-9]+:[0-9]+$ ]] ||
            refuse "cannot read this line of nvidia-smi mig -lgi: ${fields[*]}"
        instance["$gpu:$profile:${place%%:*}"]=$id
        standing+=("$gpu:$profile:${place%%:*}:${fields[2]}")
    done <<<"$text"
    text=$(rows -lci)
    while read -ra fields; do
        if [[ -z ${fields[*]-} ]]; then continue; fi
        gpu=${fields[0]} id=${fields[1]}
        [[ "$gpu $id ${fields[2]}" =~ ^[0-9]+\ [0-9]+\ MIG$ ]] ||
            refuse "cannot read this line of nvidia-smi mig -lci: ${fields[*]}"
        # One that takes its GPU instance whole has its name; others start with a number of slices: 1c.
        if [[ ${fields[3]} =~ ^[0-9]+c\. ]]; then
            pieces["$gpu:$id"]=yes
        else
            cover["$gpu:$id"]=yes
        fi
    done <<<"$text"
}

# What has to be done, from what is there to what is wanted.
mode=() clear=() destroy=() create=() uncovered=() lines=()

plan() {
    local gpu want spot key id
    declare -A keep=()
    mode=() clear=() destroy=() create=() uncovered=() lines=()
    for gpu in "${!wanted_mode[@]}"; do
        case ${wanted_mode[$gpu]}:${current[$gpu]} in
        on:Disabled) mode+=("$gpu 1") lines+=("GPU $gpu: MIG mode on") ;;
        off:Enabled) mode+=("$gpu 0") lines+=("GPU $gpu: MIG mode off") ;;
        esac
        for want in ${wanted[$gpu]-}; do
            spot=${want#*:}
            key=$gpu:${want%%:*}:${spot%%:*}
            keep[$key]=yes
            id=${instance[$key]-}
            if [[ -z $id ]]; then
                create[gpu]=${create[$gpu]+${create[$gpu]},}${want%%:*}:${spot%%:*}
                lines+=("GPU $gpu: create ${spot#*:} at slice ${spot%%:*}")
            elif [[ -n ${pieces[$gpu:$id]-} ]]; then
                clear+=("$gpu $id") uncovered+=("$gpu $id")
                lines+=("GPU $gpu: one compute instance instead of parts in ${spot#*:} at slice ${spot%%:*}")
            elif [[ -z ${cover[$gpu:$id]-} ]]; then
                uncovered+=("$gpu $id")
                lines+=("GPU $gpu: create the compute instance of ${spot#*:} at slice ${spot%%:*}")
            fi
        done
    done
    for key in "${standing[@]}"; do
        gpu=${key%%:*} spot=${key#*:*:} id=${instance[${key%:*}]}
        if [[ -n ${keep[${key%:*}]-} ]]; then continue; fi
        if [[ -n ${cover[$gpu:$id]-}${pieces[$gpu:$id]-} ]]; then clear+=("$gpu $id"); fi
        destroy+=("$gpu $id")
        lines+=("GPU $gpu: destroy ${spot#*:} at slice ${spot%%:*}")
    done
}

# MIG mode is set at boot only, and only where that takes no reset.
may_set_modes() {
    local change gpu
    if [[ -z ${mode[*]-} || $boot == yes && $mode_takes_reset == no ]]; then return; fi
    for change in "${mode[@]}"; do
        gpu=${change% *}
        say "GPU $gpu: MIG mode is ${current[$gpu]}, the fleet wants it ${wanted_mode[$gpu]}" >&2
        say "  drain the node, destroy its GPU instances, then: nvidia-smi -i $gpu -mig ${change#* }" >&2
        if [[ $mode_takes_reset == yes ]]; then
            say "  then reset the GPU or reboot the node: the mode changes with that only" >&2
        fi
    done
    exit 2
}

# The node hands out nothing, and nothing runs on the GPUs that change.
is_idle() {
    local gpu text units
    if [[ $boot == yes ]]; then
        for units in slurmd.service kubelet.service; do
            if systemctl is-active --quiet "$units"; then
                refuse "$units runs: --boot is for before it starts"
            fi
        done
    elif [[ $drained == no ]]; then
        scheduler_is_done
    fi
    for gpu in "${!wanted_mode[@]}"; do
        if ! printf '%s\n' "${lines[@]}" | grep -q "^GPU $gpu:"; then continue; fi
        text=$(nvidia-smi -i "$gpu" --query-compute-apps=pid --format=csv,noheader 2>&1) ||
            refuse "nvidia-smi: $text"
        [[ -z ${text//[[:space:]]/} ]] || refuse "GPU $gpu is in use by process" "${text//$'\n'/, }"
    done
}

scheduler_is_done() {
    local text
    text=$(scontrol --oneliner show node "$node" 2>&1) ||
        refuse "scontrol: $text. Drain the node and say --drained"
    [[ $text =~ [[:space:]]State=([^[:space:]]+) ]] || refuse "scontrol says no state of $node"
    case ${BASH_REMATCH[1]} in
    *DRAIN* | *DOWN*) ;;
    *) refuse "node $node is ${BASH_REMATCH[1]}: scontrol update NodeName=$node State=DRAIN Reason=mig" ;;
    esac
    text=$(squeue --all --noheader --nodelist="$node" --format=%A 2>&1) || refuse "squeue: $text"
    [[ -z $text ]] || refuse "node $node has jobs:" "${text//$'\n'/, }"
}

main() {
    local gpu pair line
    [[ -n $class ]] || refuse "no class of this cluster has node ${asked_class:-$node}: see --node and --class"
    if [[ -z ${wanted_mode[*]-} ]]; then
        say "class $class has no GPUs with MIG"
        return
    fi
    read_gpus
    read_instances
    plan
    if [[ -z ${lines[*]-} ]]; then
        say "class $class: GPU instances are as the fleet says"
        return
    fi
    for line in "${lines[@]}"; do say "$line"; done
    may_set_modes
    if [[ $apply == no ]]; then
        say "nothing done: --apply does it, once node $node is drained"
        exit 1
    fi
    exec 9<"$0"
    flock --nonblock 9 || refuse "another fleetc-mig is at work"
    is_idle
    for pair in "${clear[@]}"; do run nvidia-smi mig -dci -i "${pair% *}" -gi "${pair#* }"; done
    for pair in "${destroy[@]}"; do run nvidia-smi mig -dgi -i "${pair% *}" -gi "${pair#* }"; done
    for pair in "${mode[@]}"; do run nvidia-smi -i "${pair% *}" -mig "${pair#* }"; done
    read_gpus
    for gpu in "${!create[@]}"; do run nvidia-smi mig -i "$gpu" -cgi "${create[$gpu]}"; done
    # Ids of new instances are the driver's: what has no compute instance yet is read again.
    read_instances
    plan
    for pair in "${uncovered[@]}"; do run nvidia-smi mig -cci -i "${pair% *}" -gi "${pair#* }"; done
    read_gpus
    read_instances
    plan
    [[ -z ${lines[*]-} ]] || refuse "the driver says done, and still differs: ${lines[*]}"
    say "class $class: GPU instances are as the fleet says now"
}

class train no 0x2330 'NVIDIA H100 80GB HBM3'
nodes dgx 3 1 40 ''
nodes dgx 3 42 119 ''
gpu 0 off
gpu 1 off
gpu 2 off
gpu 3 off
gpu 4 off
gpu 5 off
gpu 6 off
gpu 7 off

class train.missing-5 no 0x2330 'NVIDIA H100 80GB HBM3'
nodes dgx 3 41 41 ''
gpu 0 off
gpu 1 off
gpu 2 off
gpu 3 off
gpu 4 off
gpu 5 off
gpu 6 off

class interactive no 0x2330 'NVIDIA H100 80GB HBM3'
nodes dgx 3 120 125 ''
gpu 0 off
gpu 1 off
gpu 2 off
gpu 3 off
gpu 4 off
gpu 5 off
gpu 6 off
gpu 7 off

class debug no 0x2330 'NVIDIA H100 80GB HBM3'
nodes dgx 3 126 127 ''
gpu 0 on 19:0:1g.10gb 19:1:1g.10gb 19:2:1g.10gb 19:3:1g.10gb 19:4:1g.10gb 19:5:1g.10gb 19:6:1g.10gb
gpu 1 on 19:0:1g.10gb 19:1:1g.10gb 19:2:1g.10gb 19:3:1g.10gb 19:4:1g.10gb 19:5:1g.10gb 19:6:1g.10gb
gpu 2 on 19:0:1g.10gb 19:1:1g.10gb 19:2:1g.10gb 19:3:1g.10gb 19:4:1g.10gb 19:5:1g.10gb 19:6:1g.10gb
gpu 3 on 19:0:1g.10gb 19:1:1g.10gb 19:2:1g.10gb 19:3:1g.10gb 19:4:1g.10gb 19:5:1g.10gb 19:6:1g.10gb
gpu 4 on 9:0:3g.40gb 9:4:3g.40gb
gpu 5 on 9:0:3g.40gb 9:4:3g.40gb
gpu 6 on 9:0:3g.40gb 9:4:3g.40gb
gpu 7 on 9:0:3g.40gb 9:4:3g.40gb

main
