#!/bin/sh
# What a person who knows all of it types to ask a node and its peers what the doctor asks. Some of it, at least:
# nothing here judges the answers.
avahi-daemon --check
avahi-browse -rptk _torch._tcp > /tmp/by_hand.$$
grep ^hosts: /etc/nsswitch.conf
ip -brief address
nft list ruleset
ss -ulnp 'sport = :5353'
dpkg-query -W avahi-daemon libnss-mdns
getent ahosts "$(hostname)"
getent ahosts "$(hostname).local"
cut -d';' -f7 /tmp/by_hand.$$ | grep . | sort -u | while read -r name; do
    getent ahosts "$name"
    ping -c 1 -W 1 "$name"
done
rm /tmp/by_hand.$$
