# What a container of docker-compose.yml runs: the node that is named, on its address, with the others as its peers.
set -eu
name=$1
peers=
for number in 1 2 3 4 5; do
    [ "n$number" = "$name" ] || peers="$peers --peer n$number=$QSYNC_SUBNET.1$number:3301"
done
mkdir -p /data
# shellcheck disable=SC2086  # the peers are many words
exec python3 -m nodes.host --system qsync --config "/compose/$name.json" --data /data \
    --listen 0.0.0.0:3301 $peers --log /dev/stdout
