/* The benchmark tasks for MongoDB's C driver (libmongoc).
 *
 * The Go program of the benchmark compiles this file, starts it with the connection string as its only argument, and then sends one
 * line for each turn:
 *
 *	OPERATION COUNT DATABASE ARGUMENT...
 *
 * The answer is one line, either
 *
 *	ok WALL CPU PEAK
 *
 * with nanoseconds in all for COUNT operations, and by how many bytes the peak of the resident set is above what it was before (-1 if
 * the kernel does not tell), or "error TEXT". The operation "trim" gives free memory back and lets the peak start again. The process
 * ends with its standard input.
 *
 * The work is that of the Go drivers: documents are built field by field, and documents that arrive are walked field by field, their
 * strings and binary data copied into memory of their own. One client without background threads does it all, which is the leanest
 * way to use the library, but for the parallel tasks, which take clients from a pool.
 */
#include <signal.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <mongoc/mongoc.h>

static mongoc_client_t *client;
static mongoc_client_pool_t *pool;
static char failure[1024];

/* fail notes why a task failed; the first reason stays. Threads may call it. */
static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;

static bool fail(const char *format, ...) {
	va_list args;
	pthread_mutex_lock(&failure_lock);
	if (!failure[0]) {
		va_start(args, format);
		vsnprintf(failure, sizeof failure, format, args);
		va_end(args);
		for (char *c = failure; *c; c++)
			if (*c == '\n') *c = ' ';
	}
	pthread_mutex_unlock(&failure_lock);
	return false;
}

static int64_t now(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t processor_time(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 + ((int64_t)u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* resident returns a figure of /proc/self/status in bytes, -1 where there is none. */
static int64_t resident(const char *name) {
	char line[256];
	int64_t v = -1;
	FILE *f = fopen("/proc/self/status", "r");
	if (!f) return -1;
	while (v < 0 && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name))) v = atoll(line + strlen(name)) << 10;
	fclose(f);
	return v;
}

/* forget_peak lets the peak of the resident set start again. */
static void forget_peak(void) {
	FILE *f = fopen("/proc/self/clear_refs", "w");
	if (!f) return;
	fputs("5", f);
	fclose(f);
}

/* ---- documents ---- */

/* walk visits every field of a document, copies its text and bytes, and returns how many fields there were at the top. */
static volatile int64_t sink;

static int walk(bson_iter_t *it) {
	int n = 0;
	while (bson_iter_next(it)) {
		uint32_t len = 0;
		const uint8_t *bytes;
		bson_subtype_t subtype;
		bson_iter_t child;
		const char *text, *more;
		char *key = bson_strdup(bson_iter_key(it)), *copy;
		switch (bson_iter_type(it)) {
		case BSON_TYPE_UTF8:
			text = bson_iter_utf8(it, &len);
			copy = bson_strndup(text, len);
			sink += copy[0];
			bson_free(copy);
			break;
		case BSON_TYPE_DOCUMENT:
		case BSON_TYPE_ARRAY:
			if (bson_iter_recurse(it, &child)) sink += walk(&child);
			break;
		case BSON_TYPE_BINARY:
			bson_iter_binary(it, &subtype, &len, &bytes);
			copy = bson_malloc(len + 1);
			memcpy(copy, bytes, len);
			sink += len ? copy[0] : 0;
			bson_free(copy);
			break;
		case BSON_TYPE_REGEX:
			text = bson_iter_regex(it, &more);
			sink += text[0] + more[0];
			break;
		case BSON_TYPE_DOUBLE: sink += (int64_t)bson_iter_double(it); break;
		case BSON_TYPE_INT32: sink += bson_iter_int32(it); break;
		case BSON_TYPE_INT64: sink += bson_iter_int64(it); break;
		case BSON_TYPE_BOOL: sink += bson_iter_bool(it); break;
		case BSON_TYPE_DATE_TIME: sink += bson_iter_date_time(it); break;
		case BSON_TYPE_OID: sink += bson_iter_oid(it)->bytes[0]; break;
		default: break;
		}
		sink += key[0];
		bson_free(key);
		n++;
	}
	return n;
}

static int walk_document(const bson_t *doc) {
	bson_iter_t it;
	return bson_iter_init(&it, doc) ? walk(&it) : 0;
}

/* build appends the fields of one document to another, one by one. */
static void build(bson_t *to, bson_iter_t *it) {
	while (bson_iter_next(it)) {
		const char *key = bson_iter_key(it);
		int len = (int)bson_iter_key_len(it);
		uint32_t n = 0;
		const char *text;
		bson_iter_t child;
		bson_t sub;
		switch (bson_iter_type(it)) {
		case BSON_TYPE_UTF8:
			text = bson_iter_utf8(it, &n);
			bson_append_utf8(to, key, len, text, (int)n);
			break;
		case BSON_TYPE_INT32: bson_append_int32(to, key, len, bson_iter_int32(it)); break;
		case BSON_TYPE_INT64: bson_append_int64(to, key, len, bson_iter_int64(it)); break;
		case BSON_TYPE_DOUBLE: bson_append_double(to, key, len, bson_iter_double(it)); break;
		case BSON_TYPE_BOOL: bson_append_bool(to, key, len, bson_iter_bool(it)); break;
		case BSON_TYPE_NULL: bson_append_null(to, key, len); break;
		case BSON_TYPE_DATE_TIME: bson_append_date_time(to, key, len, bson_iter_date_time(it)); break;
		case BSON_TYPE_OID: bson_append_oid(to, key, len, bson_iter_oid(it)); break;
		case BSON_TYPE_DOCUMENT:
			bson_append_document_begin(to, key, len, &sub);
			if (bson_iter_recurse(it, &child)) build(&sub, &child);
			bson_append_document_end(to, &sub);
			break;
		case BSON_TYPE_ARRAY:
			bson_append_array_begin(to, key, len, &sub);
			if (bson_iter_recurse(it, &child)) build(&sub, &child);
			bson_append_array_end(to, &sub);
			break;
		default: bson_append_iter(to, key, len, it); break;
		}
	}
}

static bson_t *built(const bson_t *from) {
	bson_t *to = bson_new();
	bson_iter_t it;
	if (bson_iter_init(&it, from)) build(to, &it);
	return to;
}

/* stored returns the document in a file. It stays in memory: the first call for a path reads it. */
static const bson_t *stored(const char *path) {
	static struct { char path[512]; bson_t *doc; } known[16];
	bson_reader_t *r;
	bool eof;
	size_t i;
	for (i = 0; i < 16 && known[i].doc; i++)
		if (!strcmp(known[i].path, path)) return known[i].doc;
	if (i == 16 || strlen(path) >= sizeof known[i].path) return fail("too many documents"), NULL;
	if (!(r = bson_reader_new_from_file(path, NULL))) return fail("cannot read %s", path), NULL;
	const bson_t *doc = bson_reader_read(r, &eof);
	if (doc) {
		strcpy(known[i].path, path);
		known[i].doc = bson_copy(doc);
	} else {
		fail("%s holds no document", path);
	}
	bson_reader_destroy(r);
	return known[i].doc;
}

/* sample is the struct with ten fields of the null server. */
typedef struct {
	bson_oid_t id;
	char *name, *email, *city, *notes;
	int32_t age;
	double balance;
	bool active;
	int64_t created, visits;
} sample;

static char *text_of(bson_iter_t *it) {
	uint32_t n;
	const char *s = bson_iter_utf8(it, &n);
	return bson_strndup(s, n);
}

static void read_sample(const bson_t *doc, sample *s) {
	bson_iter_t it;
	memset(s, 0, sizeof *s);
	if (!bson_iter_init(&it, doc)) return;
	while (bson_iter_next(&it)) {
		const char *key = bson_iter_key(&it);
		if (!strcmp(key, "_id") && BSON_ITER_HOLDS_OID(&it)) bson_oid_copy(bson_iter_oid(&it), &s->id);
		else if (!strcmp(key, "name") && BSON_ITER_HOLDS_UTF8(&it)) s->name = text_of(&it);
		else if (!strcmp(key, "email") && BSON_ITER_HOLDS_UTF8(&it)) s->email = text_of(&it);
		else if (!strcmp(key, "age") && BSON_ITER_HOLDS_INT32(&it)) s->age = bson_iter_int32(&it);
		else if (!strcmp(key, "balance") && BSON_ITER_HOLDS_DOUBLE(&it)) s->balance = bson_iter_double(&it);
		else if (!strcmp(key, "active") && BSON_ITER_HOLDS_BOOL(&it)) s->active = bson_iter_bool(&it);
		else if (!strcmp(key, "created") && BSON_ITER_HOLDS_DATE_TIME(&it)) s->created = bson_iter_date_time(&it);
		else if (!strcmp(key, "city") && BSON_ITER_HOLDS_UTF8(&it)) s->city = text_of(&it);
		else if (!strcmp(key, "visits") && BSON_ITER_HOLDS_INT64(&it)) s->visits = bson_iter_int64(&it);
		else if (!strcmp(key, "notes") && BSON_ITER_HOLDS_UTF8(&it)) s->notes = text_of(&it);
	}
}

static void free_sample(sample *s) {
	bson_free(s->name);
	bson_free(s->email);
	bson_free(s->city);
	bson_free(s->notes);
}

static void append_sample(bson_t *doc) {
	bson_oid_t id;
	bson_oid_init(&id, NULL);
	BSON_APPEND_OID(doc, "_id", &id);
	BSON_APPEND_UTF8(doc, "name", "Ada Lovelace");
	BSON_APPEND_UTF8(doc, "email", "ada@example.com");
	BSON_APPEND_INT32(doc, "age", 36);
	BSON_APPEND_DOUBLE(doc, "balance", 1234.5);
	BSON_APPEND_BOOL(doc, "active", true);
	BSON_APPEND_DATE_TIME(doc, "created", 1700000000000);
	BSON_APPEND_UTF8(doc, "city", "London");
	BSON_APPEND_INT64(doc, "visits", (int64_t)1 << 33);
	BSON_APPEND_UTF8(doc, "notes", "writes programs for engines");
}

/* file_id is the _id of the null server's file and documents. */
static void file_id(bson_oid_t *id) {
	for (int i = 0; i < 12; i++) id->bytes[i] = (uint8_t)(i + 1);
}

/* ---- single and many documents ---- */

static bool run_command(mongoc_collection_t *c, const char *db, const char *name) {
	bson_t command = BSON_INITIALIZER, reply;
	bson_error_t e;
	(void)c;
	BSON_APPEND_BOOL(&command, name, true);
	bool ok = mongoc_client_command_simple(client, db, &command, NULL, &reply, &e) || fail("%s", e.message);
	if (ok) walk_document(&reply);
	bson_destroy(&reply);
	bson_destroy(&command);
	return ok;
}

/* first calls use with the first document that a find returns. */
static bool find_one(mongoc_collection_t *c, const bson_t *filter, bool (*use)(const bson_t *)) {
	bson_t opts = BSON_INITIALIZER;
	const bson_t *doc;
	bson_error_t e;
	BSON_APPEND_INT64(&opts, "limit", 1);
	BSON_APPEND_BOOL(&opts, "singleBatch", true);
	mongoc_cursor_t *cur = mongoc_collection_find_with_opts(c, filter, &opts, NULL);
	bool ok = mongoc_cursor_next(cur, &doc) ? use(doc) : mongoc_cursor_error(cur, &e) ? fail("%s", e.message) : fail("nothing found");
	mongoc_cursor_destroy(cur);
	bson_destroy(&opts);
	return ok;
}

static bool use_sample(const bson_t *doc) {
	sample s;
	read_sample(doc, &s);
	bool ok = s.age == 36 || fail("a document without its age");
	free_sample(&s);
	return ok;
}

static bool use_document(const bson_t *doc) { return walk_document(doc) >= 2 || fail("a document without fields"); }

static bool find_all(mongoc_collection_t *c, long want, bool (*use)(const bson_t *)) {
	bson_t filter = BSON_INITIALIZER;
	const bson_t *doc;
	bson_error_t e;
	long n = 0;
	bool ok = true;
	mongoc_cursor_t *cur = mongoc_collection_find_with_opts(c, &filter, NULL, NULL);
	while (ok && mongoc_cursor_next(cur, &doc)) {
		ok = use(doc);
		n++;
	}
	if (ok && mongoc_cursor_error(cur, &e)) ok = fail("%s", e.message);
	if (ok && n != want) ok = fail("%ld documents, want %ld", n, want);
	mongoc_cursor_destroy(cur);
	bson_destroy(&filter);
	return ok;
}

/* insert_many builds the documents and inserts them with one call; from is NULL for samples. */
static bool insert_many(mongoc_collection_t *c, const bson_t *from, long count) {
	bson_t **docs = calloc((size_t)count, sizeof *docs);
	bson_error_t e;
	for (long i = 0; i < count; i++) {
		if (from) {
			docs[i] = built(from);
		} else {
			docs[i] = bson_new();
			append_sample(docs[i]);
		}
	}
	bool ok = mongoc_collection_insert_many(c, (const bson_t **)docs, (size_t)count, NULL, NULL, &e) || fail("%s", e.message);
	for (long i = 0; i < count; i++) bson_destroy(docs[i]);
	free(docs);
	return ok;
}

static bool bulk(mongoc_collection_t *c, const bson_t *from, long count, bool mixed) {
	mongoc_bulk_operation_t *b = mongoc_collection_create_bulk_operation_with_opts(c, NULL);
	bson_t all = BSON_INITIALIZER;
	bson_error_t e;
	bool ok = true;
	for (long i = 0; ok && i < count; i++) {
		bson_t *doc = built(from);
		ok = mongoc_bulk_operation_insert_with_opts(b, doc, NULL, &e);
		if (ok && mixed)
			ok = mongoc_bulk_operation_replace_one_with_opts(b, &all, doc, NULL, &e) && mongoc_bulk_operation_remove_one_with_opts(b, &all, NULL, &e);
		bson_destroy(doc);
	}
	if (ok) ok = mongoc_bulk_operation_execute(b, NULL, &e) != 0;
	if (!ok) fail("%s", e.message);
	mongoc_bulk_operation_destroy(b);
	bson_destroy(&all);
	return ok;
}

/* ---- files ---- */

/* A memory stream gives or takes bytes without a file: reads come from data, writes go to room, both may be NULL (zeros, nowhere). */
typedef struct {
	mongoc_stream_t base;
	const char *data;
	size_t at, size;
} memory_stream;

static ssize_t memory_readv(mongoc_stream_t *s, mongoc_iovec_t *iov, size_t count, size_t min_bytes, int32_t timeout) {
	memory_stream *m = (memory_stream *)s;
	ssize_t n = 0;
	(void)min_bytes, (void)timeout;
	for (size_t i = 0; i < count; i++) {
		size_t k = BSON_MIN(iov[i].iov_len, m->size - m->at);
		memcpy(iov[i].iov_base, m->data + m->at, k);
		m->at += k;
		n += (ssize_t)k;
	}
	return n;
}

static ssize_t memory_writev(mongoc_stream_t *s, mongoc_iovec_t *iov, size_t count, int32_t timeout) {
	memory_stream *m = (memory_stream *)s;
	ssize_t n = 0;
	(void)timeout;
	for (size_t i = 0; i < count; i++) {
		m->at += iov[i].iov_len;
		n += (ssize_t)iov[i].iov_len;
	}
	return n;
}

static void memory_destroy(mongoc_stream_t *s) { bson_free(s); }
static int memory_close(mongoc_stream_t *s) { return (void)s, 0; }
static int memory_flush(mongoc_stream_t *s) { return (void)s, 0; }
static bool memory_timed_out(mongoc_stream_t *s) { return (void)s, false; }

static memory_stream *new_memory_stream(const char *data, size_t size) {
	memory_stream *m = bson_malloc0(sizeof *m);
	m->base.readv = memory_readv;
	m->base.writev = memory_writev;
	m->base.destroy = memory_destroy;
	m->base.failed = memory_destroy;
	m->base.close = memory_close;
	m->base.flush = memory_flush;
	m->base.timed_out = memory_timed_out;
	m->data = data;
	m->size = size;
	return m;
}

static mongoc_gridfs_bucket_t *bucket_of(mongoc_client_t *cl, const char *db_name, const char *name, mongoc_database_t **db) {
	bson_t opts = BSON_INITIALIZER;
	bson_error_t e;
	*db = mongoc_client_get_database(cl, db_name);
	BSON_APPEND_UTF8(&opts, "bucketName", name);
	mongoc_gridfs_bucket_t *b = mongoc_gridfs_bucket_new(*db, &opts, NULL, &e);
	if (!b) {
		fail("%s", e.message);
		mongoc_database_destroy(*db);
	}
	bson_destroy(&opts);
	return b;
}

static bool upload(const char *db_name, const char *bucket, const char *data, size_t size) {
	mongoc_database_t *db;
	bson_error_t e;
	mongoc_gridfs_bucket_t *b = bucket_of(client, db_name, bucket, &db);
	if (!b) return false;
	mongoc_stream_t *from = (mongoc_stream_t *)new_memory_stream(data, size);
	bool ok = mongoc_gridfs_bucket_upload_from_stream(b, "file", from, NULL, NULL, &e) || fail("%s", e.message);
	mongoc_stream_destroy(from);
	mongoc_gridfs_bucket_destroy(b);
	mongoc_database_destroy(db);
	return ok;
}

/* download reads a file into room, or lets its bytes go if there is none. */
static bool download(const char *db_name, const char *bucket, const bson_oid_t *oid, char *room, size_t size) {
	mongoc_database_t *db;
	bson_error_t e;
	bson_value_t id;
	size_t n = 0;
	mongoc_gridfs_bucket_t *b = bucket_of(client, db_name, bucket, &db);
	if (!b) return false;
	id.value_type = BSON_TYPE_OID;
	bson_oid_copy(oid, &id.value.v_oid);
	bool ok;
	if (room) {
		mongoc_stream_t *s = mongoc_gridfs_bucket_open_download_stream(b, &id, &e);
		ok = s != NULL || fail("%s", e.message);
		while (ok && n < size) {
			ssize_t k = mongoc_stream_read(s, room + n, size - n, 0, 0);
			if (k <= 0) {
				ok = mongoc_gridfs_bucket_stream_error(s, &e) ? fail("%s", e.message) : fail("the file ends after %zu bytes", n);
				break;
			}
			n += (size_t)k;
		}
		if (s) mongoc_stream_destroy(s);
	} else {
		memory_stream *to = new_memory_stream(NULL, 0);
		ok = mongoc_gridfs_bucket_download_to_stream(b, &id, &to->base, &e) || fail("%s", e.message);
		n = to->at;
		mongoc_stream_destroy(&to->base);
	}
	if (ok && n != size) ok = fail("%zu bytes, want %zu", n, size);
	mongoc_gridfs_bucket_destroy(b);
	mongoc_database_destroy(db);
	return ok;
}

static char *read_file(const char *path, size_t *size) {
	FILE *f = fopen(path, "rb");
	if (!f) return fail("%s: %s", path, strerror(errno)), NULL;
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	char *data = malloc(*size + 1);
	if (fread(data, 1, *size, f) != *size) fail("%s: %s", path, strerror(errno));
	data[*size] = 0;
	fclose(f);
	return data;
}

/* ---- several at a time ---- */

/* A crowd works through items on as many threads as the Go side has goroutines. */
typedef struct {
	char **items;
	size_t count, next;
	pthread_mutex_t lock;
	const char *db, *name, *dir;
	bool (*work)(mongoc_client_t *, const char *item, const char *db, const char *name, const char *dir);
} crowd;

static void *crowd_member(void *arg) {
	crowd *c = arg;
	mongoc_client_t *cl = mongoc_client_pool_pop(pool);
	for (;;) {
		pthread_mutex_lock(&c->lock);
		size_t i = c->next++;
		pthread_mutex_unlock(&c->lock);
		if (i >= c->count || failure[0]) break;
		c->work(cl, c->items[i], c->db, c->name, c->dir);
	}
	mongoc_client_pool_push(pool, cl);
	return NULL;
}

static bool run_crowd(crowd *c) {
	int threads = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t *t = calloc((size_t)threads, sizeof *t);
	pthread_mutex_init(&c->lock, NULL);
	c->next = 0;
	for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, crowd_member, c);
	for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
	free(t);
	return !failure[0];
}

static bool import_file(mongoc_client_t *cl, const char *path, const char *db, const char *name, const char *dir) {
	size_t size, count = 0, room = 8192;
	bson_t **docs = malloc(room * sizeof *docs);
	bson_error_t e;
	char *data = read_file(path, &size), *line = data, *rest;
	bool ok = data != NULL;
	(void)dir;
	for (; ok && *line; line = rest) {
		char *end = strchr(line, '\n');
		rest = end ? end + 1 : line + strlen(line);
		size_t n = (size_t)((end ? end : rest) - line);
		if (n == 0) continue;
		if (count == room) docs = realloc(docs, (room *= 2) * sizeof *docs);
		docs[count] = bson_new_from_json((const uint8_t *)line, (ssize_t)n, &e);
		ok = docs[count] != NULL || fail("%s", e.message);
		if (ok) count++;
	}
	if (ok) {
		bson_t opts = BSON_INITIALIZER;
		BSON_APPEND_BOOL(&opts, "ordered", false);
		mongoc_collection_t *c = mongoc_client_get_collection(cl, db, name);
		ok = mongoc_collection_insert_many(c, (const bson_t **)docs, count, &opts, NULL, &e) || fail("%s", e.message);
		mongoc_collection_destroy(c);
		bson_destroy(&opts);
	}
	for (size_t i = 0; i < count; i++) bson_destroy(docs[i]);
	free(docs);
	free(data);
	return ok;
}

static bool upload_file(mongoc_client_t *cl, const char *path, const char *db_name, const char *bucket, const char *dir) {
	mongoc_database_t *db;
	bson_error_t e;
	(void)dir;
	mongoc_gridfs_bucket_t *b = bucket_of(cl, db_name, bucket, &db);
	if (!b) return false;
	const char *base = strrchr(path, '/');
	mongoc_stream_t *from = mongoc_stream_file_new_for_path(path, O_RDONLY, 0);
	bool ok = from != NULL || fail("%s: %s", path, strerror(errno));
	if (ok) ok = mongoc_gridfs_bucket_upload_from_stream(b, base ? base + 1 : path, from, NULL, NULL, &e) || fail("%s", e.message);
	if (from) mongoc_stream_destroy(from);
	mongoc_gridfs_bucket_destroy(b);
	mongoc_database_destroy(db);
	return ok;
}

static bool download_file(mongoc_client_t *cl, const char *path, const char *db_name, const char *bucket, const char *dir) {
	mongoc_database_t *db;
	bson_error_t e;
	char target[1024];
	const char *base = strrchr(path, '/');
	base = base ? base + 1 : path;
	mongoc_gridfs_bucket_t *b = bucket_of(cl, db_name, bucket, &db);
	if (!b) return false;
	bson_t filter = BSON_INITIALIZER;
	const bson_t *doc;
	bson_iter_t it;
	BSON_APPEND_UTF8(&filter, "filename", base);
	mongoc_cursor_t *cur = mongoc_gridfs_bucket_find(b, &filter, NULL);
	bool ok = mongoc_cursor_next(cur, &doc) && bson_iter_init_find(&it, doc, "_id");
	ok = ok || fail("%s is not in the bucket", base);
	if (ok) {
		snprintf(target, sizeof target, "%s/%s", dir, base);
		mongoc_stream_t *to = mongoc_stream_file_new_for_path(target, O_CREAT | O_WRONLY | O_TRUNC, 0600);
		ok = to != NULL || fail("%s: %s", target, strerror(errno));
		if (ok) ok = mongoc_gridfs_bucket_download_to_stream(b, bson_iter_value(&it), to, &e) || fail("%s", e.message);
		if (to) mongoc_stream_destroy(to);
	}
	mongoc_cursor_destroy(cur);
	bson_destroy(&filter);
	mongoc_gridfs_bucket_destroy(b);
	mongoc_database_destroy(db);
	return ok;
}

/* An export hands batches of documents from the one thread that reads the cursor to those that write JSON. */
enum { per_file = 5000, queue_length = 4 };

typedef struct {
	bson_t **docs;
	int count, number;
} batch;

typedef struct {
	batch queue[queue_length];
	int first, length;
	bool done;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const char *dir;
} exporter;

static void write_batch(const batch *b, const char *dir) {
	char path[1024];
	snprintf(path, sizeof path, "%s/ldjson%03d.txt", dir, b->number);
	FILE *f = fopen(path, "wb");
	if (!f) {
		fail("%s: %s", path, strerror(errno));
		return;
	}
	setvbuf(f, NULL, _IOFBF, 1 << 20);
	for (int i = 0; i < b->count; i++) {
		size_t n;
		char *json = bson_as_relaxed_extended_json(b->docs[i], &n);
		fwrite(json, 1, n, f);
		fputc('\n', f);
		bson_free(json);
		bson_destroy(b->docs[i]);
	}
	if (fclose(f)) fail("%s: %s", path, strerror(errno));
}

static void *export_member(void *arg) {
	exporter *x = arg;
	for (;;) {
		pthread_mutex_lock(&x->lock);
		while (!x->length && !x->done) pthread_cond_wait(&x->changed, &x->lock);
		if (!x->length) {
			pthread_mutex_unlock(&x->lock);
			return NULL;
		}
		batch b = x->queue[x->first];
		x->first = (x->first + 1) % queue_length;
		x->length--;
		pthread_cond_broadcast(&x->changed);
		pthread_mutex_unlock(&x->lock);
		write_batch(&b, x->dir);
		free(b.docs);
	}
}

static void hand_over(exporter *x, batch *b) {
	pthread_mutex_lock(&x->lock);
	while (x->length == queue_length) pthread_cond_wait(&x->changed, &x->lock);
	x->queue[(x->first + x->length++) % queue_length] = *b;
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
	b->docs = NULL;
	b->count = 0;
	b->number++;
}

static bool export_all(const char *db, const char *name, const char *dir) {
	int threads = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
	exporter x = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .dir = dir};
	pthread_t *t = calloc((size_t)threads, sizeof *t);
	bson_t filter = BSON_INITIALIZER;
	const bson_t *doc;
	bson_error_t e;
	batch b = {0};
	for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, export_member, &x);
	mongoc_client_t *cl = mongoc_client_pool_pop(pool);
	mongoc_collection_t *c = mongoc_client_get_collection(cl, db, name);
	mongoc_cursor_t *cur = mongoc_collection_find_with_opts(c, &filter, NULL, NULL);
	while (mongoc_cursor_next(cur, &doc)) {
		if (!b.docs) b.docs = malloc(per_file * sizeof *b.docs);
		b.docs[b.count++] = bson_copy(doc);
		if (b.count == per_file) hand_over(&x, &b);
	}
	if (mongoc_cursor_error(cur, &e)) fail("%s", e.message);
	if (b.count) hand_over(&x, &b);
	pthread_mutex_lock(&x.lock);
	x.done = true;
	pthread_cond_broadcast(&x.changed);
	pthread_mutex_unlock(&x.lock);
	for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
	mongoc_cursor_destroy(cur);
	mongoc_collection_destroy(c);
	mongoc_client_pool_push(pool, cl);
	bson_destroy(&filter);
	free(t);
	return !failure[0];
}

/* ---- turns ---- */

enum { most_words = 256 };

/* turn does an operation count times; words are the line's, from the database on. */
static bool turn(const char *op, long count, char **words, int n) {
	const char *db = words[0], *name = n > 1 ? words[1] : "";
	const bson_t *doc = NULL;
	mongoc_collection_t *c = mongoc_client_get_collection(client, db, name);
	bool ok = true;
	static char *data, *room;
	static size_t data_size, room_size;
	static char data_path[512];
	crowd all = {.items = words + 3, .count = (size_t)(n > 3 ? n - 3 : 0), .db = db, .name = name, .dir = n > 2 ? words[2] : ""};

	if (!strcmp(op, "insert_one") || !strcmp(op, "insert_many") || !strcmp(op, "bulk_insert") || !strcmp(op, "bulk_mixed"))
		ok = n > 2 && (doc = stored(words[2])) != NULL;
	if (!strcmp(op, "upload") && (n < 3 || strcmp(data_path, words[2]))) {
		free(data);
		data = n > 2 ? read_file(words[2], &data_size) : NULL;
		ok = data != NULL;
		if (ok) snprintf(data_path, sizeof data_path, "%s", words[2]);
	}
	if (!strcmp(op, "download") && n > 3 && room_size < (size_t)atol(words[3])) {
		free(room);
		room = malloc(room_size = (size_t)atol(words[3]));
		memset(room, 1, room_size); /* as the Go side's memory, it has been used before */
	}
	for (long i = 0; ok && i < count; i++) {
		if (!strcmp(op, "command")) {
			ok = run_command(c, db, name);
		} else if (!strcmp(op, "find_one") || !strcmp(op, "find_sample")) {
			bson_t filter = BSON_INITIALIZER;
			bson_oid_t id;
			bool plain = !strcmp(op, "find_one");
			file_id(&id);
			if (plain) BSON_APPEND_INT32(&filter, "_id", (int32_t)(i % 10000 + 1));
			else BSON_APPEND_OID(&filter, "_id", &id);
			ok = find_one(c, &filter, plain ? use_document : use_sample);
			bson_destroy(&filter);
		} else if (!strcmp(op, "insert_one") || !strcmp(op, "insert_sample")) {
			bson_error_t e;
			bson_t *d = doc ? built(doc) : bson_new();
			if (!doc) append_sample(d);
			ok = mongoc_collection_insert_one(c, d, NULL, NULL, &e) || fail("%s", e.message);
			bson_destroy(d);
		} else if (!strcmp(op, "find_all")) {
			ok = find_all(c, atol(words[2]), use_document);
		} else if (!strcmp(op, "find_samples")) {
			ok = find_all(c, atol(words[2]), use_sample);
		} else if (!strcmp(op, "insert_samples")) {
			ok = insert_many(c, NULL, atol(words[2]));
		} else if (!strcmp(op, "insert_many")) {
			ok = insert_many(c, doc, atol(words[3]));
		} else if (!strcmp(op, "bulk_insert")) {
			ok = bulk(c, doc, atol(words[3]), false);
		} else if (!strcmp(op, "bulk_mixed")) {
			ok = bulk(c, doc, atol(words[3]), true);
		} else if (!strcmp(op, "upload")) {
			ok = upload(db, name, data, data_size);
		} else if (!strcmp(op, "download") || !strcmp(op, "download_away")) {
			bson_oid_t id;
			bson_oid_init_from_string(&id, words[2]);
			ok = download(db, name, &id, op[8] ? NULL : room, (size_t)atol(words[3]));
		} else if (!strcmp(op, "import")) {
			all.work = import_file;
			ok = run_crowd(&all);
		} else if (!strcmp(op, "export")) {
			ok = export_all(db, name, all.dir);
		} else if (!strcmp(op, "upload_files")) {
			all.work = upload_file;
			ok = run_crowd(&all);
		} else if (!strcmp(op, "download_files")) {
			all.work = download_file;
			ok = run_crowd(&all);
		} else {
			ok = fail("there is no operation %s", op);
		}
	}
	mongoc_collection_destroy(c);
	return ok;
}

int main(int argc, char **argv) {
	bson_error_t e;
	static char line[1 << 16];
	if (argc != 2) {
		fprintf(stderr, "usage: %s URI\n", argv[0]);
		return 2;
	}
	signal(SIGINT, SIG_IGN); // a terminal's interrupt reaches it too; it ends with its input
	mongoc_init();
	mongoc_uri_t *uri = mongoc_uri_new_with_error(argv[1], &e);
	if (!uri) {
		fprintf(stderr, "%s\n", e.message);
		return 2;
	}
	mongoc_write_concern_t *w = mongoc_write_concern_new();
	mongoc_write_concern_set_w(w, 1); /* as the specification of the benchmarks asks */
	mongoc_uri_set_write_concern(uri, w);
	mongoc_write_concern_destroy(w);
	client = mongoc_client_new_from_uri(uri);
	pool = mongoc_client_pool_new(uri);
	mongoc_client_set_error_api(client, MONGOC_ERROR_API_VERSION_2);
	mongoc_client_pool_set_error_api(pool, MONGOC_ERROR_API_VERSION_2);
	while (fgets(line, sizeof line, stdin)) {
		char *words[most_words], *save = NULL;
		int n = 0;
		for (char *w = strtok_r(line, " \n", &save); w && n < most_words; w = strtok_r(NULL, " \n", &save)) words[n++] = w;
		if (n < 3) continue;
		failure[0] = 0;
		if (!strcmp(words[0], "trim")) {
			malloc_trim(0);
			forget_peak();
		}
		int64_t before = resident("VmRSS:");
		int64_t cpu = processor_time(), wall = now(CLOCK_MONOTONIC);
		bool ok = !strcmp(words[0], "trim") || turn(words[0], atol(words[1]), words + 2, n - 2);
		wall = now(CLOCK_MONOTONIC) - wall;
		cpu = processor_time() - cpu;
		int64_t peak = resident("VmHWM:");
		if (ok) printf("ok %" PRId64 " %" PRId64 " %" PRId64 "\n", wall, cpu, before < 0 || peak < 0 ? -1 : peak - before);
		else printf("error %s\n", failure);
		fflush(stdout);
	}
	mongoc_client_pool_destroy(pool);
	mongoc_client_destroy(client);
	mongoc_uri_destroy(uri);
	mongoc_cleanup();
	return 0;
}
