#!/bin/sh
# Makes the certificates of the test receiver anew. They are for tests alone:
# the keys are public, and nothing outside the tests trusts their authority.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names='subjectAltName=DNS:hooks.example.com,DNS:localhost,IP:127.0.0.1'
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$work/$1.pem"; }
key authority
key receiver
openssl req -x509 -new -key "$work/authority.pem" -subj '/CN=Tidings test authority' -days 36500 \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -out "$work/authority.crt"
openssl req -new -key "$work/receiver.pem" -subj '/CN=Tidings test receiver' -addext "$names" -out "$work/receiver.csr"
cat > "$work/ca.conf" <<CONF
[ca]
default_ca = own
[own]
database = $work/index
rand_serial = yes
new_certs_dir = $work
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
CONF
: > "$work/index"
sign() {
    openssl ca -batch -notext -config "$work/ca.conf" -cert "$work/authority.crt" -keyfile "$work/authority.pem" \
        -in "$work/receiver.csr" -startdate "$1" -enddate "$2" -out "$work/$3.crt"
    openssl x509 -in "$work/$3.crt" -outform DER -out "$3.der"
}
sign 20250101000000Z 21250101000000Z receiver
sign 20240101000000Z 20240201000000Z expired
openssl x509 -in "$work/authority.crt" -outform DER -out authority.der
openssl pkcs8 -topk8 -nocrypt -in "$work/receiver.pem" -outform DER -out receiver.key.der
