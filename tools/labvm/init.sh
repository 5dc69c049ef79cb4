#!/bin/busybox sh
# The first program in the lab PC: mount this machine's files, run the command, tell its exit code, switch off.
# Whatever goes wrong ends without an exit code, which the other side takes for a failure.

/bin/busybox --install -s /bin
export PATH=/bin

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module options; do
    insmod "/modules/$module" $options || echo "no module $module"
done < /modules/order

exec < /dev/hvc0 > /dev/hvc0 2>&1
stty -onlcr

share="trans=virtio,version=9p2000.L,msize=500000"
mount -t 9p -o "$share,ro,cache=loose" host /host || poweroff -f
mount -t tmpfs written /written
mkdir /written/files /written/work
mount -t overlay -o lowerdir=/host,upperdir=/written/files,workdir=/written/work lab /lab || poweroff -f

mount --move /proc /lab/proc
mount --move /sys /lab/sys
mount --move /dev /lab/dev
mkdir -p /lab/dev/shm /lab/dev/pts
mount -t tmpfs shm /lab/dev/shm
mount -t devpts pts /lab/dev/pts
mount -t tmpfs run /lab/run
mount -t configfs config /lab/sys/kernel/config
mkdir /lab/run/lab
mount -t 9p -o "$share" exchange /lab/run/lab || poweroff -f

ip link set lo up
hostname lab
read -r up _ < /lab/proc/uptime
echo "lab PC: Linux $(uname -r), up after $up s"

chroot /lab /bin/sh /run/lab/command
echo $? > /lab/run/lab/unchecked
mv /lab/run/lab/unchecked /lab/run/lab/exit-code
poweroff -f
