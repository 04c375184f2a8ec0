# What a container of docker-compose.ssh.yml runs: sshd with the keys of make-key.sh, and no other way in.
set -eu
[ -f /compose/ssh/host_key ] || { echo "no keys yet; on the host: sh compose/make-key.sh" >&2; exit 1; }
mkdir -p /run/sshd
install -m 600 /compose/ssh/host_key /run/host_key
exec /usr/sbin/sshd -D -e -f /dev/null -h /run/host_key \
    -o AuthorizedKeysFile=/compose/ssh/key.pub -o StrictModes=no -o PidFile=none -o UsePAM=no \
    -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no \
    -o "Subsystem=sftp /usr/lib/openssh/sftp-server"
