/* Both layers over TLS: with the right files, with those of a stranger, with files that are not there. Arguments: the schema, the remote, the folder with the files of `source` and `relay`. */
#include "check.h"
#include "zoo-idl.h"

static const char *folder;

static const char *
file(char *place, size_t size, const char *name)
{
    snprintf(place, size, "%s/%s", folder, name);
    return place;
}

static corvid_client *
client_with(corvid_config *config, const char *remote, const char *authority)
{
    char key[512], certificate[512], ca[512];
    corvid_client *client;
    OK(corvid_config_set_tls(config, file(key, sizeof key, "relay-key.pem"), file(certificate, sizeof certificate, "relay-cert.pem"),
                             file(ca, sizeof ca, authority)));
    OK(corvid_client_new(config, remote, &client));
    return client;
}

static void
core(const char *schema, const char *remote)
{
    corvid_config *config;
    corvid_table keepers;
    corvid_column name;
    char text[256];
    OK(corvid_config_new(schema, &config));
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_column(config, "Keeper", "name", CORVID_MODE_READ, &name));

    corvid_client *client = client_with(config, remote, "source-ca.pem");
    wait_for_contents(client);
    corvid_txn *txn;
    corvid_row row;
    corvid_atom atom = corvid_atom_string("ann");
    OK(corvid_txn_new(client, &txn));
    OK(corvid_txn_insert(txn, keepers, &row));
    OK(corvid_txn_write(txn, row, name, &atom, NULL, 1));
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_txn_free(txn));
    OK(corvid_client_free(client));

    /* The server's certificate is not of this authority. The text of the failure says so. */
    client = client_with(config, remote, "relay-ca.pem");
    while (corvid_client_failure(client, text, sizeof text, NULL) != CORVID_OK) {
        turn(client);
    }
    CHECK(strstr(text, "TLS") != NULL);
    corvid_session session = CORVID_SESSION_INIT;
    OK(corvid_client_session(client, &session));
    CHECK(!session.has_contents);
    OK(corvid_client_free(client));

    /* Files that are missing are told at once. */
    OK(corvid_config_set_tls(config, "/nowhere/key.pem", "/nowhere/cert.pem", "/nowhere/ca.pem"));
    CHECK(corvid_client_new(config, remote, &client) == CORVID_ERR_REMOTE);
    CHECK(strstr(corvid_error_text(), "TLS lacks") != NULL);
    OK(corvid_config_set_tls(config, NULL, NULL, NULL));
    CHECK(corvid_client_new(config, remote, &client) == CORVID_ERR_REMOTE);
    OK(corvid_config_free(config));
}

/* Whether the only attempt of a replica brings contents. */
static bool
connects_once(const char *remote)
{
    struct corvid_idl *idl = corvid_idl_create(remote, &zoo_idl_class, true, false);
    while (corvid_idl_run(idl), corvid_idl_is_alive(idl) && !corvid_idl_has_ever_connected(idl)) {
        corvid_idl_wait(idl);
        OK(corvid_poll_block());
    }
    bool has_contents = corvid_idl_has_ever_connected(idl);
    corvid_idl_destroy(idl);
    return has_contents;
}

static void
typed(const char *remote)
{
    char key[512], certificate[512], ca[512];
    struct corvid_idl *idl = corvid_idl_create_unconnected(&zoo_idl_class, true);
    corvid_idl_set_tls(idl, file(key, sizeof key, "relay-key.pem"), file(certificate, sizeof certificate, "relay-cert.pem"),
                       file(ca, sizeof ca, "source-ca.pem"));
    corvid_idl_set_remote(idl, remote, true);
    corvid_idl_get_initial_snapshot(idl);
    const struct zoo_keeper *keeper = zoo_keeper_first(idl);
    CHECK(keeper != NULL && !strcmp(keeper->name, "ann") && zoo_keeper_next(keeper) == NULL);
    corvid_idl_destroy(idl);

    /* The files of the process serve replicas without files of their own. */
    idl = corvid_idl_create(remote, &zoo_idl_class, true, true);
    OK(corvid_tls_set_private_key_file(key));
    OK(corvid_tls_set_certificate_file(certificate));
    OK(corvid_tls_set_ca_certificate_file(ca, false));
    corvid_idl_get_initial_snapshot(idl);
    CHECK(zoo_keeper_first(idl) != NULL);
    corvid_idl_destroy(idl);

    /* No cipher is left for TLS 1.2; TLS 1.3 has ciphers of its own. */
    OK(corvid_tls_set_ciphers("HIGH:!HIGH"));
    OK(corvid_tls_set_protocols("TLSv1.2"));
    CHECK(!connects_once(remote));
    OK(corvid_tls_set_protocols("TLSv1.3"));
    CHECK(connects_once(remote));
    /* Null changes nothing. */
    OK(corvid_tls_set_ca_certificate_file(NULL, false));
    CHECK(connects_once(remote));
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 4);
    char *schema = read_file(argv[1]);
    folder = argv[3];
    core(schema, argv[2]);
    typed(argv[2]);
    free(schema);
    puts("ok");
    return 0;
}
