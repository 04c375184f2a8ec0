# Makes compose/ssh/: a throwaway key for the five machines of docker-compose.ssh.yml, their host key, and what ssh and
# `--cluster ssh` must know of them. Git ignores the folder. Run it again for fresh keys.
set -eu
folder=$(CDPATH='' cd -- "$(dirname "$0")" && pwd)/ssh
command -v ssh-keygen >/dev/null || { echo "ssh-keygen is missing; try: apt-get install openssh-client" >&2; exit 1; }
rm -rf "$folder"
mkdir -m 700 "$folder"
ssh-keygen -q -t ed25519 -N '' -C qsync-compose -f "$folder/key"
ssh-keygen -q -t ed25519 -N '' -C qsync-compose-host -f "$folder/host_key"
read -r kind public _ <"$folder/host_key.pub"
{
    for number in 1 2 3 4 5; do
        echo "${QSYNC_SUBNET:-10.214.5}.1$number $kind $public" >>"$folder/known_hosts"
        echo "Host n$number"
        echo "    HostName ${QSYNC_SUBNET:-10.214.5}.1$number"
        echo "    User root"
        echo "    IdentityFile $folder/key"
        echo "    IdentitiesOnly yes"
        echo "    UserKnownHostsFile $folder/known_hosts"
    done
} >"$folder/config"
{
    echo 'user = "root"'
    echo 'key = "key"'
    echo 'known_hosts = "known_hosts"'
    for number in 1 2 3 4 5; do
        echo "[[hosts]]"
        echo "host = \"${QSYNC_SUBNET:-10.214.5}.1$number\""
    done
} >"$folder/inventory.toml"
echo "made $folder"
