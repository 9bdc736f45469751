/* Values as text, for programs that do not link Open vSwitch's library: what control utilities read
 * from their command lines and print, the symbols of rows that a command creates, and the strings
 * that grow (openvswitch/dynamic-string.h) which they are printed to. */

#ifndef CORVID_COMPAT_OVSDB_TEXT_OWN_H
#define CORVID_COMPAT_OVSDB_TEXT_OWN_H 1

#include <stdarg.h>
#include <stdio.h>

#include "corvid-compat-ovsdb-data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings that grow. */

#ifndef DYNAMIC_STRING_H
#define DYNAMIC_STRING_H 1
struct ds {
    char *string;
    size_t length;
    size_t allocated;
};
#define DS_EMPTY_INITIALIZER {NULL, 0, 0}

static inline void
ds_init(struct ds *ds)
{
    memset(ds, 0, sizeof *ds);
}

static inline void
ds_clear(struct ds *ds)
{
    ds->length = 0;
}

static inline void
ds_destroy(struct ds *ds)
{
    free(ds->string);
    ds_init(ds);
}

/* Appends `size` bytes, which the caller fills. */
static inline char *
ds_put_uninit(struct ds *ds, size_t size)
{
    if (ds->length + size > ds->allocated || !ds->string) {
        ds->allocated = 2 * (ds->length + size) + 16;
        /* The NUL is not counted, in libopenvswitch neither. */
        ds->string = (char *) corvid_compat_alloc(ds->string, ds->allocated + 1);
    }
    ds->length += size;
    ds->string[ds->length] = '\0';
    return ds->string + ds->length - size;
}

static inline void
ds_put_char(struct ds *ds, char letter)
{
    *ds_put_uninit(ds, 1) = letter;
}

static inline void
ds_put_buffer(struct ds *ds, const char *text, size_t size)
{
    memcpy(ds_put_uninit(ds, size), text, size);
}

static inline void
ds_put_cstr(struct ds *ds, const char *text)
{
    ds_put_buffer(ds, text, strlen(text));
}

static inline void
ds_put_format(struct ds *ds, const char *format, ...)
    __attribute__((__format__(printf, 2, 3)));

static inline void
ds_put_format(struct ds *ds, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = corvid_compat_format(format, args);
    va_end(args);
    ds_put_cstr(ds, text);
    free(text);
}

static inline char *
ds_cstr(struct ds *ds)
{
    ds_put_uninit(ds, 0);
    return ds->string;
}

static inline char *
ds_steal_cstr(struct ds *ds)
{
    char *text = ds_cstr(ds);
    ds_init(ds);
    return text;
}
#endif

/* Symbols. */

struct ovsdb_symbol {
    struct uuid uuid;
    /* The command has created the row. */
    bool created;
    /* Columns refer to the row. */
    bool strong_ref;
    bool weak_ref;
    char *name;
    struct ovsdb_symbol *next;
};

/* In Open vSwitch's library, `sh` is a hash table by name; here it is a list. */
struct ovsdb_symbol_table {
    struct ovsdb_symbol *first;
};

static inline struct ovsdb_symbol_table *
ovsdb_symbol_table_create(void)
{
    struct ovsdb_symbol_table *made = (struct ovsdb_symbol_table *) corvid_compat_alloc(
        NULL, sizeof *made);
    made->first = NULL;
    return made;
}

static inline void
ovsdb_symbol_table_destroy(struct ovsdb_symbol_table *symbols)
{
    while (symbols && symbols->first) {
        struct ovsdb_symbol *symbol = symbols->first;
        symbols->first = symbol->next;
        free(symbol->name);
        free(symbol);
    }
    free(symbols);
}

static inline struct ovsdb_symbol *
ovsdb_symbol_table_get(const struct ovsdb_symbol_table *symbols, const char *name)
{
    struct ovsdb_symbol *symbol = symbols->first;
    while (symbol && strcmp(symbol->name, name)) {
        symbol = symbol->next;
    }
    return symbol;
}

/* Adds a name with a UUID. */
static inline struct ovsdb_symbol *
ovsdb_symbol_table_put(struct ovsdb_symbol_table *symbols, const char *name,
                       const struct uuid *uuid, bool created)
{
    struct ovsdb_symbol *made = (struct ovsdb_symbol *) corvid_compat_alloc(NULL, sizeof *made);
    memset(made, 0, sizeof *made);
    made->name = corvid_compat_strdup(name);
    made->uuid = *uuid;
    made->created = created;
    made->next = symbols->first;
    symbols->first = made;
    return made;
}

/* The symbol of a name, a new one with a new UUID for a new name. */
static inline struct ovsdb_symbol *
ovsdb_symbol_table_insert(struct ovsdb_symbol_table *symbols, const char *name)
{
    struct ovsdb_symbol *symbol = ovsdb_symbol_table_get(symbols, name);
    if (!symbol) {
        struct uuid uuid = uuid_random();
        symbol = ovsdb_symbol_table_put(symbols, name, &uuid, false);
    }
    return symbol;
}

/* Text to values. */

/* The symbols as the library reads with them; null for none. */
static inline corvid_symbols *
corvid_compat_symbols(const struct ovsdb_symbol_table *symbols)
{
    corvid_symbols *made = NULL;
    if (symbols && corvid_symbols_new(&made) == CORVID_OK) {
        for (const struct ovsdb_symbol *each = symbols->first; each; each = each->next) {
            corvid_symbols_add(made, each->name, each->uuid);
        }
    }
    return made;
}

/* Takes over the names that a text has named. */
static inline void
corvid_compat_symbols_named(struct ovsdb_symbol_table *symbols, corvid_symbols *names, bool is_weak)
{
    char name[256];
    struct uuid uuid;
    bool is_named;
    for (size_t i = 0; names
         && corvid_symbols_get(names, i, name, sizeof name, &uuid, &is_named) == CORVID_OK; i++) {
        if (is_named) {
            struct ovsdb_symbol *symbol = ovsdb_symbol_table_get(symbols, name);
            if (!symbol) {
                symbol = ovsdb_symbol_table_put(symbols, name, &uuid, false);
            }
            symbol->weak_ref = symbol->weak_ref || is_weak;
            symbol->strong_ref = symbol->strong_ref || !is_weak;
        }
    }
    corvid_symbols_free(names);
}

static inline bool
corvid_compat_is_weak(const struct ovsdb_base_type *base)
{
    return base->type == OVSDB_TYPE_UUID && base->uuid.refTableName && base->uuid.refType == 1;
}

/* Reads a value. Returns null, or the message for the user, which the caller frees. */
static inline char *
ovsdb_datum_from_string(struct ovsdb_datum *datum, const struct ovsdb_type *type, const char *text,
                        struct ovsdb_symbol_table *symbols)
{
    char message[1000] = "";
    corvid_datum *read = NULL;
    corvid_symbols *names = corvid_compat_symbols(symbols);
    enum corvid_error error = corvid_text_read(type, text, names, &read, message, sizeof message);
    corvid_compat_symbols_named(symbols, names,
                                corvid_compat_is_weak(&type->key)
                                    || corvid_compat_is_weak(&type->value));
    ovsdb_datum_init_empty(datum);
    if (error != CORVID_OK) {
        return corvid_compat_strdup(message[0] ? message : corvid_error_text());
    }
    corvid_compat_datum_take(datum, read);
    return NULL;
}

/* Reads an atom. With `range_end`, a range of integers is taken too: then `*range_end` is its last
 * one, which the caller frees, and otherwise null. Returns as ovsdb_datum_from_string. */
static inline char *
ovsdb_atom_from_string(union ovsdb_atom *atom, union ovsdb_atom **range_end,
                       const struct ovsdb_base_type *base, const char *text,
                       struct ovsdb_symbol_table *symbols)
{
    char message[1000] = "";
    corvid_datum *read = NULL;
    corvid_symbols *names = corvid_compat_symbols(symbols);
    enum corvid_error error = corvid_text_read_atom(base, text, names, &read, message,
                                                    sizeof message);
    corvid_compat_symbols_named(symbols, names, corvid_compat_is_weak(base));
    if (range_end) {
        *range_end = NULL;
    }
    size_t n = error == CORVID_OK ? corvid_datum_count(read) : 0;
    if (n > 1 && !range_end) {
        corvid_datum_free(read);
        n = 0;
        snprintf(message, sizeof message, "\"%.900s\" is not a valid integer", text);
    }
    if (!n) {
        return corvid_compat_strdup(message[0] ? message : corvid_error_text());
    }
    const struct corvid_atom *keys = corvid_datum_keys(read);
    corvid_compat_atom_to(atom, &keys[0]);
    if (n > 1) {
        *range_end = (union ovsdb_atom *) corvid_compat_alloc(NULL, sizeof **range_end);
        corvid_compat_atom_to(*range_end, &keys[n - 1]);
    }
    corvid_datum_free(read);
    return NULL;
}

static inline bool
ovsdb_token_is_delim(unsigned char letter)
{
    return strchr(":=, []{}!<>", letter) != NULL;
}

/* Takes a word from the beginning of `*text`, up to a delimiter or the end. A backslash takes the
 * next letter as it is, and between double quotes nothing delimits. Returns null and the word in
 * `*word`, or the message for the user; the caller frees either. */
static inline char *
ovsdb_token_parse(const char **text, char **word)
{
    struct ds ds = DS_EMPTY_INITIALIZER, message = DS_EMPTY_INITIALIZER;
    bool is_quoted = false;
    const char *p = *text;
    for (; *p && (is_quoted || !ovsdb_token_is_delim((unsigned char) *p)); p++) {
        if (*p == '\\') {
            if (!p[1]) {
                ds_put_format(&message, "%s: backslash at end of argument", *text);
                break;
            }
            if (is_quoted) {
                ds_put_char(&ds, *p);
            }
            p++;
        } else if (*p == '"') {
            is_quoted = !is_quoted;
        }
        ds_put_char(&ds, *p);
    }
    if (is_quoted && !message.length) {
        ds_put_format(&message, "%s: quoted string extends past end of argument", *text);
    }
    if (message.length) {
        ds_destroy(&ds);
        *word = NULL;
        return ds_steal_cstr(&message);
    }
    *word = ds_steal_cstr(&ds);
    *text = p;
    return NULL;
}

/* Values to text. */

static inline void
corvid_compat_datum_put(const struct ovsdb_datum *datum, const struct ovsdb_type *type,
                        enum corvid_notation notation, struct ds *out)
{
    struct corvid_atom *atoms = corvid_compat_datum_atoms(datum, type->key.type, type->value.type);
    const struct corvid_atom *values = ovsdb_type_is_map(type) ? atoms + datum->n : NULL;
    size_t length = 0;
    if (corvid_text_write(type, atoms, values, datum->n, notation, NULL, 0, &length) == CORVID_OK) {
        char *place = ds_put_uninit(out, length);
        corvid_text_write(type, atoms, values, datum->n, notation, place, length + 1, NULL);
    }
    free(atoms);
}

static inline void
ovsdb_datum_to_string(const struct ovsdb_datum *datum, const struct ovsdb_type *type,
                      struct ds *out)
{
    corvid_compat_datum_put(datum, type, CORVID_NOTATION_TEXT, out);
}

static inline void
ovsdb_datum_to_bare(const struct ovsdb_datum *datum, const struct ovsdb_type *type, struct ds *out)
{
    corvid_compat_datum_put(datum, type, CORVID_NOTATION_BARE, out);
}

static inline void
ovsdb_atom_to_string(const union ovsdb_atom *atom, enum ovsdb_atomic_type type, struct ds *out)
{
    struct ovsdb_type scalar = ovsdb_type_boolean;
    union ovsdb_atom key = *atom;
    struct ovsdb_datum datum;
    ovsdb_datum_init_empty(&datum);
    datum.n = 1;
    datum.keys = &key;
    scalar.key = corvid_compat_base(type);
    ovsdb_datum_to_string(&datum, &scalar, out);
}

/* JSON of a value, as its text. */
struct json {
    char *text;
};

static inline struct json *
ovsdb_datum_to_json(const struct ovsdb_datum *datum, const struct ovsdb_type *type)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    struct json *json = (struct json *) corvid_compat_alloc(NULL, sizeof *json);
    corvid_compat_datum_put(datum, type, CORVID_NOTATION_JSON, &ds);
    json->text = ds_steal_cstr(&ds);
    return json;
}

static inline char *
json_to_string(const struct json *json, int flags)
{
    (void) flags;
    return corvid_compat_strdup(json->text);
}

static inline void
json_destroy(struct json *json)
{
    if (json) {
        free(json->text);
        free(json);
    }
}

#ifdef __cplusplus
}
#endif

#endif
