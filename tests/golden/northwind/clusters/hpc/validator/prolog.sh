#!/bin/sh
# fleet northwind, cluster hpc
# Install as /etc/fleetc/prolog.sh, executable, owned by root, and call it from a Prolog of yours, or
# say Prolog=/etc/fleetc/prolog.sh in slurm.conf. It fails only if the node does not
# conform: what cannot be decided must not drain a fleet.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
exec /usr/bin/fleetc-validate check --intent /etc/fleetc/intent --source nvml --exit-style prolog
