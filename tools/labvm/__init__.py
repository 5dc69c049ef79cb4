"""A lab PC in software: a Debian kernel under QEMU that has the devices this machine's kernel may lack.

It runs on the files of this machine, which it can read but not change, so that the same Python, the same libraries and
the same checkout are tested; only the kernel is another. What it writes goes to memory and is gone when it ends.

    kernel.py       gets the kernel and packs what it needs to start
    machine.py      starts it, runs one command in it, brings back the exit code
    init.sh         the first program in there
    uhid.py         a HID device made by a program
    usb_gadget.py   a USB HID device, behind a USB port that exists in software only

Limits: everything is emulated and ten to twenty times slower, so no time measured in there means anything.
"""
