/* The names of Open vSwitch's stream-ssl.h: the TLS settings of the process, and the options that
 * set them. With CORVID_WITH_OPENVSWITCH, or after Open vSwitch's own header, each setting is made in
 * both libraries, because each makes connections of its own. */

#ifndef CORVID_COMPAT_STREAM_SSL_H
#define CORVID_COMPAT_STREAM_SSL_H 1

#include "corvid.h"

#if defined(CORVID_WITH_OPENVSWITCH) && !defined(STREAM_SSL_H) && defined(__has_include)
#if __has_include(<stream-ssl.h>)
#include <stream-ssl.h>
#elif __has_include(<lib/stream-ssl.h>)
#include <lib/stream-ssl.h>
#endif
#endif

#ifdef STREAM_SSL_H

/* A macro does not expand within itself, so the first call is that of Open vSwitch's function. */
#define stream_ssl_set_private_key_file(FILE) \
    (stream_ssl_set_private_key_file(FILE), (void) corvid_tls_set_private_key_file(FILE))
#define stream_ssl_set_certificate_file(FILE) \
    (stream_ssl_set_certificate_file(FILE), (void) corvid_tls_set_certificate_file(FILE))
#define stream_ssl_set_ca_cert_file(FILE, BOOTSTRAP) \
    (stream_ssl_set_ca_cert_file(FILE, BOOTSTRAP), \
     (void) corvid_tls_set_ca_certificate_file(FILE, BOOTSTRAP))
#define stream_ssl_set_peer_ca_cert_file(FILE) \
    (stream_ssl_set_peer_ca_cert_file(FILE), (void) corvid_tls_set_peer_ca_certificate_file(FILE))
#define stream_ssl_set_key_and_cert(KEY, CERTIFICATE) \
    (stream_ssl_set_key_and_cert(KEY, CERTIFICATE), (void) corvid_tls_set_private_key_file(KEY), \
     (void) corvid_tls_set_certificate_file(CERTIFICATE))
#define stream_ssl_set_protocols(PROTOCOLS) \
    (stream_ssl_set_protocols(PROTOCOLS), (void) corvid_tls_set_protocols(PROTOCOLS))
#define stream_ssl_set_ciphers(CIPHERS) \
    (stream_ssl_set_ciphers(CIPHERS), (void) corvid_tls_set_ciphers(CIPHERS))
#define stream_ssl_set_ciphersuites(SUITES) \
    (stream_ssl_set_ciphersuites(SUITES), (void) corvid_tls_set_ciphersuites(SUITES))
#define stream_ssl_set_server_name(NAME) \
    (stream_ssl_set_server_name(NAME), (void) corvid_tls_set_server_name(NAME))

#else

/* Open vSwitch's header, included later, adds nothing. */
#define STREAM_SSL_H 1

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline bool
stream_ssl_is_configured(void)
{
    return corvid_tls_is_configured();
}

static inline void
stream_ssl_set_private_key_file(const char *file_name)
{
    corvid_tls_set_private_key_file(file_name);
}

static inline void
stream_ssl_set_certificate_file(const char *file_name)
{
    corvid_tls_set_certificate_file(file_name);
}

static inline void
stream_ssl_set_key_and_cert(const char *private_key_file, const char *certificate_file)
{
    corvid_tls_set_private_key_file(private_key_file);
    corvid_tls_set_certificate_file(certificate_file);
}

static inline void
stream_ssl_set_ca_cert_file(const char *file_name, bool bootstrap)
{
    corvid_tls_set_ca_certificate_file(file_name, bootstrap);
}

static inline void
stream_ssl_set_peer_ca_cert_file(const char *file_name)
{
    corvid_tls_set_peer_ca_certificate_file(file_name);
}

static inline void
stream_ssl_set_protocols(const char *protocols)
{
    corvid_tls_set_protocols(protocols);
}

static inline void
stream_ssl_set_ciphers(const char *ciphers)
{
    corvid_tls_set_ciphers(ciphers);
}

static inline void
stream_ssl_set_ciphersuites(const char *ciphersuites)
{
    corvid_tls_set_ciphersuites(ciphersuites);
}

static inline void
stream_ssl_set_server_name(const char *server_name)
{
    corvid_tls_set_server_name(server_name);
}

/* Options of the command line, for programs that use getopt_long. */

#define SSL_OPTION_ENUMS \
    OPT_SSL_PROTOCOLS, OPT_SSL_CIPHERS, OPT_SSL_CIPHERSUITES, OPT_SSL_SERVER_NAME

#define STREAM_SSL_LONG_OPTIONS \
    {"private-key", required_argument, NULL, 'p'}, {"certificate", required_argument, NULL, 'c'}, \
        {"ca-cert", required_argument, NULL, 'C'}, \
        {"ssl-protocols", required_argument, NULL, OPT_SSL_PROTOCOLS}, \
        {"ssl-ciphers", required_argument, NULL, OPT_SSL_CIPHERS}, \
        {"ssl-ciphersuites", required_argument, NULL, OPT_SSL_CIPHERSUITES}, \
        {"ssl-server-name", required_argument, NULL, OPT_SSL_SERVER_NAME}

#define STREAM_SSL_OPTION_HANDLERS \
    case 'p': \
        stream_ssl_set_private_key_file(optarg); \
        break; \
    case 'c': \
        stream_ssl_set_certificate_file(optarg); \
        break; \
    case 'C': \
        stream_ssl_set_ca_cert_file(optarg, false); \
        break; \
    case OPT_SSL_PROTOCOLS: \
        stream_ssl_set_protocols(optarg); \
        break; \
    case OPT_SSL_CIPHERS: \
        stream_ssl_set_ciphers(optarg); \
        break; \
    case OPT_SSL_CIPHERSUITES: \
        stream_ssl_set_ciphersuites(optarg); \
        break; \
    case OPT_SSL_SERVER_NAME: \
        stream_ssl_set_server_name(optarg); \
        break;

#define STREAM_SSL_CASES \
    case 'p': \
    case 'c': \
    case 'C': \
    case OPT_SSL_PROTOCOLS: \
    case OPT_SSL_CIPHERS: \
    case OPT_SSL_CIPHERSUITES: \
    case OPT_SSL_SERVER_NAME:

#ifdef __cplusplus
}
#endif

#endif
#endif
