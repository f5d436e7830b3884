#!/bin/bash
# Boots a systemd in namespaces of its own, on a copy-on-write view of this machine. Nothing of it outlives its process 1.
#   boot.sh FOLDER CGROUP PYTHON PACKAGES SOURCE
# FOLDER: for the view; CGROUP: an empty cgroup v2 directory; PYTHON: prefix of the interpreter; PACKAGES: site-packages;
# SOURCE: the checkout under test.
set -euo pipefail
if [ -z "${INSIDE:-}" ]; then
    echo $$ > "$2/cgroup.procs"
    INSIDE=1 exec unshare --mount --pid --fork --kill-child --cgroup --ipc --uts --net --propagation private "$0" "$@"
fi
folder=$1 python=$3 packages=$4 source=$5
root=$folder/root

ip link set lo up
mount -t tmpfs -o size=1g view "$folder"
mkdir "$folder"/{upper,work,root}
mount -t overlay view -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for place in run tmp dev; do mount -t tmpfs -o mode=755 "$place" "$root/$place"; done
chmod 1777 "$root/tmp"
for node in null zero full random urandom tty; do touch "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; done
mkdir "$root"/dev/{pts,shm}
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

# Nothing of this machine's own is started.
units=$root/etc/systemd/system
rm -rf "$units" "$root/var/lib/schedulerd" "$root/etc/schedulerd" "$root/opt/schedulerd"
mkdir -p "$units"
for target in sysinit basic local-fs network network-online time-sync sockets timers paths; do
    printf '[Unit]\nDefaultDependencies=no\n' > "$units/$target.target"
done
printf '[Unit]\nWants=systemd-journald.service\nAfter=systemd-journald.service\n' > "$units/test.target"
for unit in systemd-udevd systemd-timesyncd systemd-logind systemd-networkd dbus; do
    ln -s /dev/null "$units/$unit.service"
done
cp "$source"/systemd/*.service "$units"
cp "$source/systemd/schedulerd.sysusers.conf" "$root/usr/lib/sysusers.d/schedulerd.conf"
echo 0123456789abcdef0123456789abcdef > "$root/etc/machine-id"

# The product, as its documentation installs it; the interpreter where ProtectHome= does not hide it.
home=$root/opt/schedulerd
mkdir -p "$home"/{bin,source,packages,python}
mount --bind "$python" "$home/python"
mount --bind "$packages" "$home/packages"
cp -r --preserve=timestamps "$source/scheduler" "$source/compensators" "$source/systemd" "$source/tests" "$home/source"
printf 'home = /opt/schedulerd/python/bin\n' > "$home/pyvenv.cfg"
program=$(basename "$(ls "$python"/bin/python3.[0-9]* | grep -E 'python3\.[0-9]+$' | head -n 1)")
ln -s "/opt/schedulerd/python/bin/$program" "$home/bin/python3"
mkdir -p "$home/lib/$program/site-packages"
printf '/opt/schedulerd/source\n/opt/schedulerd/packages\n' > "$home/lib/$program/site-packages/product.pth"
for command in schedulerd:scheduler.daemon schedctl:scheduler.cli.main; do
    printf '#!/opt/schedulerd/bin/python3\nimport sys\nfrom %s import main\nsys.exit(main())\n' "${command#*:}" \
        > "$home/bin/${command%%:*}"
    chmod 755 "$home/bin/${command%%:*}"
done

# An interpreter whose library is beside it looks for it where it was built.
echo /opt/schedulerd/python/lib > "$root/etc/ld.so.conf.d/000-python.conf"
chroot "$root" /sbin/ldconfig

# As an installer does it: the daemon's user may not write there, and would compile everything at every start.
chroot "$root" /opt/schedulerd/bin/python3 -m compileall -q /opt/schedulerd/source/{scheduler,compensators}

mkdir "$root/outside"
mount --make-rprivate /
cd "$root"
pivot_root . outside
umount -l /outside
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=test.target
