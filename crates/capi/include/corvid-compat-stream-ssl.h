/* The names of Open vSwitch's stream-ssl.h: the TLS settings of the process. */

#ifndef CORVID_COMPAT_STREAM_SSL_H
#define CORVID_COMPAT_STREAM_SSL_H 1

#include "corvid.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline void
corvid_compat_set_key_and_cert(const char *private_key, const char *certificate)
{
    corvid_tls_set_private_key_file(private_key);
    corvid_tls_set_certificate_file(certificate);
}

#ifdef __cplusplus
}
#endif

/* Macros, because a program that links libopenvswitch has functions of these names. */
#define stream_ssl_set_key_and_cert corvid_compat_set_key_and_cert
#define stream_ssl_set_private_key_file corvid_tls_set_private_key_file
#define stream_ssl_set_certificate_file corvid_tls_set_certificate_file
#define stream_ssl_set_ca_cert_file corvid_tls_set_ca_certificate_file
#define stream_ssl_set_protocols corvid_tls_set_protocols
#define stream_ssl_set_ciphers corvid_tls_set_ciphers

#endif
