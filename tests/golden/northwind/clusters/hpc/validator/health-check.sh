#!/bin/sh
# fleet northwind, cluster hpc
# Install as /etc/fleetc/health-check.sh, executable, owned by root: slurm.conf names it.
# slurmd runs it as root, at its start and then at intervals, and acts on nothing that it says: it
# drains the node itself, and gives it back once it conforms. A reason of someone else stays.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
exec /usr/bin/fleetc-validate check --intent /etc/fleetc/intent --source nvml --exit-style slurm-health --slurmd slurmd --history /var/lib/fleetc-validate/history.json --drain-slurm --max-drained 4
