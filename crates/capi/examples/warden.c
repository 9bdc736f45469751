/* warden: a daemon that looks after the keepers of a zoo.
 *
 * It is written for Open vSwitch's client library, in the shape of the daemons of Open vSwitch and OVN, and compiles with libcorvid by corvid-idl-compat.h: one source, both ways.
 *
 *     cc -DUSE_CORVID warden.c zoorec-idl.c -lcorvid          ours
 *     cc warden.c zoorec-idl.c $(pkg-config --libs libopenvswitch)
 *
 * It does the following:
 *
 * - Only the warden that holds the lock "warden" writes.
 * - Every keeper with `external_ids:wants=SPECIES` gets an animal of the species: one that another keeper has none use for, else a new one.
 * - A keeper that wants nothing any more loses its animals.
 * - `external_ids:animals` of each keeper counts its animals, and `external_ids:team` names the keepers of the same age, found by an index.
 * - The number of keepers is `cfg` of the table Settings.
 * - Changes are logged as they come, from the tracked rows.
 *
 * It ends on SIGTERM, or when the keeper "stop" appears. */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef USE_CORVID
#include "corvid-idl-compat.h"
#else
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "smap.h"
#include "stream-ssl.h"
#include "uuid.h"
#endif
#include "zoorec-idl.h"

VLOG_DEFINE_THIS_MODULE(warden);

/* The options of the command line. */
struct options {
    const char *remote;
    /* Only keepers of this name and the keeper "stop" are looked after; null for all. */
    const char *only;
    bool is_verbose;
};

/* The replica, and the indexes over it. */
struct warden {
    struct ovsdb_idl_loop loop;
    struct ovsdb_idl_index *keepers_by_age;
    struct ovsdb_idl_index *keepers_by_name;
    struct ovsdb_idl_index *animals_by_species;
    /* The seqno when the keepers were last looked at. */
    unsigned int seqno;
    unsigned int condition_seqno;
    bool had_lock;
    bool is_stopping;
};

static volatile sig_atomic_t is_terminated;

static void
terminate(int signal_number)
{
    (void) signal_number;
    is_terminated = 1;
}

static void
usage(const char *program)
{
    printf("usage: %s [--only=NAME] [--private-key=FILE --certificate=FILE --ca-cert=FILE] [--verbose] REMOTE\n", program);
    exit(EXIT_SUCCESS);
}

static void
parse_options(int argc, char *argv[], struct options *options)
{
    static const struct option long_options[] = {
        {"only", required_argument, NULL, 'o'},
        {"private-key", required_argument, NULL, 'p'},
        {"certificate", required_argument, NULL, 'c'},
        {"ca-cert", required_argument, NULL, 'C'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    memset(options, 0, sizeof *options);
    for (;;) {
        int option = getopt_long(argc, argv, "o:p:c:C:vh", long_options, NULL);
        if (option < 0) {
            break;
        }
        switch (option) {
        case 'o':
            options->only = optarg;
            break;
        case 'p':
            stream_ssl_set_private_key_file(optarg);
            break;
        case 'c':
            stream_ssl_set_certificate_file(optarg);
            break;
        case 'C':
            stream_ssl_set_ca_cert_file(optarg, false);
            break;
        case 'v':
            options->is_verbose = true;
            break;
        case 'h':
            usage(argv[0]);
            break;
        default:
            exit(EXIT_FAILURE);
        }
    }
    if (argc - optind != 1) {
        fprintf(stderr, "%s: exactly one remote is needed\n", argv[0]);
        exit(EXIT_FAILURE);
    }
    options->remote = argv[optind];
}

/* Chooses what is replicated. */
static void
warden_init(struct warden *warden, const struct options *options)
{
    struct ovsdb_idl *idl = ovsdb_idl_create(options->remote, &zoorec_idl_class, false, true);
    struct ovsdb_idl_loop loop = OVSDB_IDL_LOOP_INITIALIZER(idl);

    memset(warden, 0, sizeof *warden);
    warden->loop = loop;
    ovsdb_idl_add_column(idl, &zoorec_keeper_col_name);
    ovsdb_idl_add_column(idl, &zoorec_keeper_col_age);
    ovsdb_idl_add_column(idl, &zoorec_keeper_col_external_ids);
    ovsdb_idl_add_column(idl, &zoorec_keeper_col_animals);
    ovsdb_idl_add_column(idl, &zoorec_animal_col_species);
    ovsdb_idl_add_column(idl, &zoorec_animal_col_name);
    ovsdb_idl_track_add_column(idl, &zoorec_keeper_col_name);
    ovsdb_idl_track_add_column(idl, &zoorec_keeper_col_external_ids);
    ovsdb_idl_track_add_column(idl, &zoorec_animal_col_species);
    /* Only this daemon writes it. */
    ovsdb_idl_add_column(idl, &zoorec_settings_col_cfg);
    ovsdb_idl_omit_alert(idl, &zoorec_settings_col_cfg);

    warden->keepers_by_age = ovsdb_idl_index_create2(idl, &zoorec_keeper_col_age, &zoorec_keeper_col_name);
    warden->keepers_by_name = ovsdb_idl_index_create1(idl, &zoorec_keeper_col_name);
    warden->animals_by_species = ovsdb_idl_index_create1(idl, &zoorec_animal_col_species);

    if (options->only) {
        struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);
        zoorec_keeper_add_clause_name(&condition, OVSDB_F_EQ, options->only);
        zoorec_keeper_add_clause_name(&condition, OVSDB_F_EQ, "stop");
        warden->condition_seqno = zoorec_keeper_set_condition(idl, &condition);
        ovsdb_idl_condition_destroy(&condition);
    }
    ovsdb_idl_set_lock(idl, "warden");
}

static void
warden_destroy(struct warden *warden)
{
    ovsdb_idl_loop_destroy(&warden->loop);
}

static const struct zoorec_keeper *
find_keeper(const struct warden *warden, const char *name)
{
    struct zoorec_keeper *key = zoorec_keeper_index_init_row(warden->keepers_by_name);
    zoorec_keeper_index_set_name(key, name);
    const struct zoorec_keeper *keeper = zoorec_keeper_index_find(warden->keepers_by_name, key);
    zoorec_keeper_index_destroy_row(key);
    return keeper;
}

static bool
has_animal(const struct zoorec_keeper *keeper, const struct zoorec_animal *animal)
{
    for (size_t i = 0; i < keeper->n_animals; i++) {
        if (keeper->animals[i] == animal) {
            return true;
        }
    }
    return false;
}

static bool
has_species(const struct zoorec_keeper *keeper, const char *species)
{
    for (size_t i = 0; i < keeper->n_animals; i++) {
        if (!strcmp(keeper->animals[i]->species, species)) {
            return true;
        }
    }
    return false;
}

/* Whether a keeper wants an animal of a species. */
static bool
wants(const struct zoorec_keeper *keeper, const char *species)
{
    const char *wanted = smap_get(&keeper->external_ids, "wants");
    return wanted && !strcmp(wanted, species);
}

/* An animal of a species that no keeper has use for. */
static const struct zoorec_animal *
find_spare(const struct warden *warden, const char *species)
{
    struct zoorec_animal *key = zoorec_animal_index_init_row(warden->animals_by_species);
    const struct zoorec_animal *animal, *found = NULL;

    zoorec_animal_index_set_species(key, species);
    ZOOREC_ANIMAL_FOR_EACH_EQUAL (animal, key, warden->animals_by_species) {
        const struct zoorec_keeper *keeper;
        bool is_used = false;
        ZOOREC_KEEPER_FOR_EACH (keeper, warden->loop.idl) {
            is_used = is_used || (has_animal(keeper, animal) && wants(keeper, species));
        }
        if (!is_used && !found) {
            found = animal;
        }
    }
    zoorec_animal_index_destroy_row(key);
    return found;
}

static bool
is_known_species(const char *species)
{
    return !strcmp(species, "owl") || !strcmp(species, "newt") || !strcmp(species, "bear");
}

/* Gives a keeper the animal that it wants, and takes the others away. */
static void
assign_animals(struct warden *warden, struct ovsdb_idl_txn *txn, const struct zoorec_keeper *keeper)
{
    const char *wanted = smap_get(&keeper->external_ids, "wants");

    if (!wanted) {
        if (keeper->n_animals) {
            zoorec_keeper_verify_external_ids(keeper);
            zoorec_keeper_set_animals(keeper, NULL, 0);
        }
        return;
    }
    if (!is_known_species(wanted)) {
        VLOG_WARN("keeper %s wants a %s, which no zoo has", keeper->name, wanted);
        return;
    }
    if (!has_species(keeper, wanted)) {
        const struct zoorec_animal *animal = find_spare(warden, wanted);
        if (!animal) {
            struct zoorec_animal *made = zoorec_animal_insert(txn);
            zoorec_animal_set_species(made, wanted);
            zoorec_animal_set_name(made, keeper->name);
            animal = made;
        }
        zoorec_keeper_verify_external_ids(keeper);
        zoorec_keeper_update_animals_addvalue(keeper, animal);
        VLOG_INFO("keeper %s gets a %s", keeper->name, wanted);
    }
}

/* The names of the other keepers of an age. */
static void
describe_team(const struct warden *warden, const struct zoorec_keeper *keeper, char *text, size_t size)
{
    struct zoorec_keeper *from = zoorec_keeper_index_init_row(warden->keepers_by_age);
    struct zoorec_keeper *to = zoorec_keeper_index_init_row(warden->keepers_by_age);
    const struct zoorec_keeper *other;

    text[0] = '\0';
    zoorec_keeper_index_set_age(from, keeper->age);
    zoorec_keeper_index_set_age(to, keeper->age + 1);
    ZOOREC_KEEPER_FOR_EACH_RANGE (other, from, to, warden->keepers_by_age) {
        if (other != keeper && other->age == keeper->age) {
            size_t length = strlen(text);
            snprintf(text + length, size - length, "%s%s", length ? "," : "", other->name);
        }
    }
    zoorec_keeper_index_destroy_row(from);
    zoorec_keeper_index_destroy_row(to);
}

/* Writes what the warden knows of a keeper. */
static void
update_status(const struct warden *warden, const struct zoorec_keeper *keeper)
{
    struct smap ids;
    char team[256];

    smap_clone(&ids, &keeper->external_ids);
    describe_team(warden, keeper, team, sizeof team);
    if (team[0]) {
        smap_replace(&ids, "team", team);
    } else {
        smap_remove(&ids, "team");
    }
    smap_remove(&ids, "animals");
    smap_add_format(&ids, "animals", "%zu", keeper->n_animals);
    if (!smap_equal(&ids, &keeper->external_ids)) {
        zoorec_keeper_set_external_ids(keeper, &ids);
    }
    smap_destroy(&ids);
}

static void
update_settings(const struct warden *warden, struct ovsdb_idl_txn *txn)
{
    const struct zoorec_settings *settings = zoorec_settings_first(warden->loop.idl);
    const struct zoorec_keeper *keeper;
    int64_t n = 0;

    ZOOREC_KEEPER_FOR_EACH (keeper, warden->loop.idl) {
        n++;
    }
    if (!settings) {
        settings = zoorec_settings_insert(txn);
    }
    if (settings->cfg != n) {
        zoorec_settings_set_cfg(settings, n);
    }
}

/* Logs the changes since the last turn. */
static void
log_changes(const struct warden *warden)
{
    const struct zoorec_keeper *keeper;
    const struct zoorec_animal *animal;

    ZOOREC_KEEPER_FOR_EACH_TRACKED (keeper, warden->loop.idl) {
        if (zoorec_keeper_is_deleted(keeper)) {
            VLOG_INFO("keeper %s (" UUID_FMT ") has left", keeper->name, UUID_ARGS(&keeper->header_.uuid));
        } else if (zoorec_keeper_is_new(keeper)) {
            VLOG_INFO("keeper %s (" UUID_FMT ") has come", keeper->name, UUID_ARGS(&keeper->header_.uuid));
        } else if (zoorec_keeper_is_updated(keeper, ZOOREC_KEEPER_COL_EXTERNAL_IDS)) {
            const struct smap_node *node;
            SMAP_FOR_EACH (node, &keeper->external_ids) {
                VLOG_DBG("keeper %s: %s=%s", keeper->name, node->key, node->value);
            }
        }
    }
    ZOOREC_ANIMAL_FOR_EACH_TRACKED (animal, warden->loop.idl) {
        if (zoorec_animal_is_deleted(animal)) {
            VLOG_INFO("%s %s of table %s is gone", animal->species, animal->name,
                      animal->header_.table->class_->name);
        }
    }
}

/* Whether there is a reason to look at all keepers. */
static bool
is_due(struct warden *warden)
{
    struct ovsdb_idl *idl = warden->loop.idl;
    bool has_lock = ovsdb_idl_has_lock(idl);

    if (has_lock != warden->had_lock) {
        warden->had_lock = has_lock;
        warden->seqno = 0;
        VLOG_INFO("%s", has_lock ? "this warden is in charge" : "another warden is in charge");
    }
    if (!has_lock || ovsdb_idl_get_condition_seqno(idl) < warden->condition_seqno) {
        return false;
    }
    return warden->seqno != ovsdb_idl_get_seqno(idl);
}

static void
warden_run(struct warden *warden)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_loop_run(&warden->loop);
    const struct zoorec_keeper *keeper;

    log_changes(warden);
    if (find_keeper(warden, "stop")) {
        warden->is_stopping = true;
    } else if (txn && is_due(warden)) {
        unsigned int seqno = ovsdb_idl_get_seqno(warden->loop.idl);
        ovsdb_idl_txn_add_comment(txn, "warden: turn at %u", seqno);
        ZOOREC_KEEPER_FOR_EACH (keeper, warden->loop.idl) {
            assign_animals(warden, txn, keeper);
            update_status(warden, keeper);
        }
        update_settings(warden, txn);
        warden->seqno = seqno;
    }
    int result = ovsdb_idl_loop_commit_and_wait(&warden->loop);
    if (!result) {
        VLOG_WARN("the transaction has failed, and is made again");
        warden->seqno = 0;
    }
    ovsdb_idl_track_clear(warden->loop.idl);
}

int
main(int argc, char *argv[])
{
    struct options options;
    struct warden warden;
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = terminate;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    parse_options(argc, argv, &options);
    warden_init(&warden, &options);
    while (!is_terminated && !warden.is_stopping) {
        warden_run(&warden);
        if (!warden.is_stopping) {
            poll_block();
        }
    }
    VLOG_INFO("the warden leaves");
    warden_destroy(&warden);
    return EXIT_SUCCESS;
}
