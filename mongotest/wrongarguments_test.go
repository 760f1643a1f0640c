package mongotest_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
)

var (
	argumentsEvery = flag.Int("arguments.every", 101, "TestWrongArguments asks one in so many; 1 asks all, for some three minutes per version")
	argumentsSeed  = flag.Uint64("arguments.seed", 1, "which ones TestWrongArguments asks")
)

// oldWords are what parsers by hand said of values of a wrong type, and definitions do not.
var oldWords = regexp.MustCompile(`had the wrong type\. Expected|must be of type|is not a valid argument to|^9: Failed to parse:|` +
	`field should be an object|expected types '\[long`)

// byHandStill are commands whose parsers are by hand in 8.2, too.
var byHandStill = map[string]bool{"saslStart": true, "cloneCollectionAsCapped": true, "setFeatureCompatibilityVersion": true,
	"addShard": true, "addShardToZone": true, "removeShardFromZone": true, "updateZoneKeyRange": true, "movePrimary": true, "moveChunk": true,
	"removeShard": true, "killOp": true, "filemd5": true, "createIndexes": true, "balancerStart": true}

// TestWrongArguments sends commands, with values of all types in the place of each argument, on all
// levels, with arguments left out, given twice, and unknown. Whatever it is, the answer is not an
// error of mongotest's own, and servers of 8.2 do not have the words of 4.4. A mongos refuses what
// a replica set refuses, with the same words, and so it is whatever the order of the arguments,
// but for what otherOnMongos and anyOrder have.
func TestWrongArguments(t *testing.T) {
	norace.Skip(t, "one command comes after the other, and there are thousands")
	for _, version := range []string{"4.4.0", "5.0.0", "6.0.0", "7.0.8", "8.0.4", "8.2.4"} {
		asked, refused, compared := 0, 0, 0
		askArguments(t, version, func(q question, a answers) {
			asked++
			if a.set != "ok" {
				refused++
			}
			for name, answer := range map[string]string{"standalone": a.standalone, "replica set": a.set, "mongos": a.mongos, "shuffled": a.shuffled} {
				switch {
				case internalError.MatchString(answer) && q.path != "$readPreference.hedge":
					t.Errorf("%s %s: %v: %s", version, name, q, answer)
				case version == "8.2.4" && !byHandStill[q.cmd] && !strings.HasPrefix(q.path, "$readPreference") && oldWords.MatchString(answer):
					t.Errorf("%s %s: %v has the words of 4.4: %s", version, name, q, answer)
				}
			}
			if !q.declared(otherOnMongos, version) {
				if compared++; alike(a.set) != strings.Replace(alike(a.mongos), "failed on: sh0 :: caused by :: ", "", 1) {
					t.Errorf("%s: %v:\na replica set answers %s\na mongos answers %s", version, q, a.set, a.mongos)
				}
			}
			if !q.declared(anyOrder, version) && alike(a.set) != alike(a.shuffled) {
				t.Errorf("%s: %v:\nin order %s\nshuffled %s", version, q, a.set, a.shuffled)
			}
		})
		t.Logf("%s: %d asked, %d refused, %d the same on a mongos", version, asked, refused, compared)
		if refused < asked/5 || compared < asked/3 {
			t.Errorf("%s: of %d only %d were refused and %d compared with a mongos", version, asked, refused, compared)
		}
	}
}

// question says which variant of a command is asked.
type question struct{ cmd, path, what string }

func (q question) String() string { return fmt.Sprintf("%s with %s of %s", q.cmd, q.path, q.what) }

// declared reports whether a table has a command, an argument of it ("cmd.argument"), or one of all
// (".argument"). The value is the first version, if any, from which on the table has it not.
func (q question) declared(table map[string]string, version string) bool {
	argument, _, _ := strings.Cut(q.path, ".")
	for _, key := range []string{q.cmd, q.cmd + "." + argument, "." + argument} {
		if until, ok := table[key]; ok && (until == "" || version < until) {
			return true
		}
	}
	return false
}

// answers are what four deployments say to the same question: the last gets the arguments behind
// the first in another order.
type answers struct{ standalone, set, mongos, shuffled string }

// otherOnMongos are commands and arguments to which a mongos has an answer of its own: it does not
// have the command, has another one of its name, or sends it on to shards and says so. Where the
// command is known to it alone, the same holds for a replica set.
var otherOnMongos = map[string]string{
	".writeConcern": "", // a mongos makes an error of some commands' writeConcernError, as it was recorded for create

	"distinct": "5.0", "dropDatabase": "5.0", "drop.drop": "7.0", "find.find": "5.0", "find.hint": "", "find.min": "", "find.max": "",
	"update.updates": "", "createIndexes.commitQuorum": "", "getMore": "", "commitTransaction": "", "getShardVersion": "",
	"isMaster.maxAwaitTimeMS": "", "isMaster.topologyVersion": "", "killOp": "", "profile": "", "replSetGetStatus": "", "compact": "",

	"applyOps": "", "cloneCollectionAsCapped": "", "cleanupOrphaned": "", "dbHash": "", "getLastError": "", "getPrevError": "", "isSelf": "",
	"lockInfo": "", "multicast": "", "reIndex": "", "replSetFreeze": "", "replSetGetConfig": "", "resetError": "", "top": "",

	"addShard": "", "addShardTag": "", "addShardToZone": "", "balancerCollectionStatus": "", "balancerStart": "", "balancerStatus": "",
	"balancerStop": "", "clearJumboFlag": "", "enableSharding": "", "flushRouterConfig": "", "getShardMap": "", "isdbgrid": "",
	"listShards": "", "mergeChunks": "", "moveChunk": "", "movePrimary": "", "netstat": "", "refineCollectionShardKey": "", "removeShard": "",
	"removeShardFromZone": "", "shardCollection": "", "split": "", "updateZoneKeyRange": "",
}

// anyOrder are commands whose whole form has two arguments that a server of the version refuses, so
// that the order decides which of them it names, and one whose second try finds another state.
var anyOrder = map[string]string{
	"create": "7.0", "collMod": "", "mapReduce": "", "count": "", "dropDatabase": "", "find.$readPreference": "",
}

// variable is what differs between two deployments that say the same: what is shown of commands and
// identifiers.
var variable = regexp.MustCompile(`(?s)[\[{].*[\]}]|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}`)

// alike is an answer without what differs between deployments.
func alike(answer string) string { return variable.ReplaceAllString(answer, "") }

// internalError is an error of code 1 or 8, or one that shows a value of Go's.
var internalError = regexp.MustCompile(`^(1|8): |%!|runtime error|interface conversion`)

// wholeCommand is a command with most of its arguments, which goes well.
type wholeCommand struct{ db, cmd string }

var wholeCommands = []wholeCommand{
	{"db", `{"find": "c", "filter": {"a": 1}, "projection": {"a": 1}, "sort": {"a": 1}, "hint": {"_id": 1}, "skip": 1, "limit": 1, "batchSize": 1, "singleBatch": true, "comment": "x", "maxTimeMS": 1000, "readConcern": {"level": "local"}, "max": {"_id": 1}, "min": {"_id": 0}, "returnKey": false, "showRecordId": false, "tailable": false, "oplogReplay": false, "noCursorTimeout": true, "awaitData": false, "allowPartialResults": false, "collation": {"locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 3, "numericOrdering": false, "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": false}, "allowDiskUse": true}`},
	{"db", `{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}], "cursor": {"batchSize": 1}, "allowDiskUse": true, "maxTimeMS": 1000, "bypassDocumentValidation": true, "readConcern": {"level": "local"}, "collation": {"locale": "en"}, "hint": {"_id": 1}, "comment": "x", "writeConcern": {"w": 1}}`},
	{"db", `{"aggregate": "c", "pipeline": [], "explain": false, "cursor": {}}`},
	{"db", `{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 2}, "hint": {"b": 1}, "readConcern": {"level": "majority", "afterClusterTime": {"$timestamp": {"t": 1, "i": 1}}}, "collation": {"locale": "de", "caseLevel": true, "caseFirst": "upper", "strength": 1, "numericOrdering": true, "alternate": "shifted", "maxVariable": "space", "normalization": true, "backwards": true}, "lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAg==", "subType": "04"}}}, "$readPreference": {"mode": "secondaryPreferred", "tags": [{"a": "b"}, {}], "maxStalenessSeconds": 90}}`},
	{"db", `{"insert": "c", "documents": [{"a": 1}], "writeConcern": {"w": "majority", "j": false, "fsync": false, "wtimeout": 10}, "lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAw==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "stmtIds": [1]}`},
	{"db", `{"count": "c", "query": {"a": 1}, "limit": 1, "skip": 1, "hint": "_id_", "readConcern": {"level": "local"}, "collation": {"locale": "en"}, "maxTimeMS": 1000, "comment": "x"}`},
	{"db", `{"distinct": "c", "key": "a", "query": {"a": 1}, "readConcern": {"level": "local"}, "collation": {"locale": "en"}, "comment": "x", "maxTimeMS": 1000}`},
	{"db", `{"insert": "c", "documents": [{"a": 1}], "ordered": true, "writeConcern": {"w": 1, "j": true, "wtimeout": 10}, "bypassDocumentValidation": true, "comment": "x"}`},
	{"db", `{"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b.$[e]": 1}}, "upsert": false, "multi": true, "collation": {"locale": "en"}, "arrayFilters": [{"e": 1}], "hint": {"_id": 1}}], "ordered": true, "writeConcern": {"w": 1}, "bypassDocumentValidation": true, "comment": "x"}`},
	{"db", `{"update": "c", "updates": [{"q": {}, "u": [{"$set": {"b": 1}}], "c": {"x": 1}}]}`},
	{"db", `{"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1, "collation": {"locale": "en"}, "hint": "_id_"}], "ordered": true, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"findAndModify": "c", "query": {"a": 1}, "sort": {"a": 1}, "update": {"$set": {"b.$[e]": 1}}, "new": true, "fields": {"a": 1}, "upsert": false, "bypassDocumentValidation": true, "writeConcern": {"w": 1}, "maxTimeMS": 1000, "collation": {"locale": "en"}, "arrayFilters": [{"e": 1}], "hint": {"_id": 1}, "comment": "x"}`},
	{"db", `{"findAndModify": "c", "query": {}, "remove": true}`},
	{"db", `{"explain": {"find": "c", "filter": {}}, "verbosity": "queryPlanner", "comment": "x"}`},
	{"db", `{"create": "n", "capped": true, "size": 4096, "max": 10, "storageEngine": {}, "validator": {"a": 1}, "validationLevel": "strict", "validationAction": "error", "indexOptionDefaults": {}, "collation": {"locale": "en"}, "writeConcern": {"w": 1}, "comment": "x", "idIndex": {"key": {"_id": 1}, "name": "_id_"}, "autoIndexId": true, "flags": 1, "temp": false}`},
	{"db", `{"create": "n", "viewOn": "c", "pipeline": [{"$match": {}}], "collation": {"locale": "en"}}`},
	{"db", `{"create": "n", "timeseries": {"timeField": "t", "metaField": "m", "granularity": "seconds", "bucketMaxSpanSeconds": 3600}, "expireAfterSeconds": 10}`},
	{"db", `{"create": "n", "clusteredIndex": {"key": {"_id": 1}, "unique": true, "name": "x"}, "changeStreamPreAndPostImages": {"enabled": true}}`},
	{"db", `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "unique": false, "background": true, "partialFilterExpression": {"a": 1}, "expireAfterSeconds": 5, "hidden": false, "storageEngine": {}, "collation": {"locale": "en"}, "v": 2}], "commitQuorum": "majority", "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "sparse": true, "dropDups": true, "ns": "db.c"}]}`},
	{"db", `{"createIndexes": "c", "indexes": [{"key": {"t": "text"}, "name": "t", "weights": {"t": 2}, "default_language": "english", "language_override": "l", "textIndexVersion": 3}]}`},
	{"db", `{"createIndexes": "c", "indexes": [{"key": {"g": "2d"}, "name": "g", "bits": 20, "min": -100, "max": 100}]}`},
	{"db", `{"createIndexes": "c", "indexes": [{"key": {"h": "2dsphere"}, "name": "h", "2dsphereIndexVersion": 3}]}`},
	{"db", `{"createIndexes": "c", "indexes": [{"key": {"$**": 1}, "name": "w", "wildcardProjection": {"a": 1}}]}`},
	{"db", `{"dropIndexes": "c", "index": "b_1", "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"listIndexes": "c", "cursor": {"batchSize": 1}, "comment": "x"}`},
	{"db", `{"listCollections": 1, "filter": {"name": "c"}, "nameOnly": true, "authorizedCollections": false, "cursor": {"batchSize": 1}, "comment": "x"}`},
	{"admin", `{"listDatabases": 1, "filter": {"name": "db"}, "nameOnly": true, "authorizedDatabases": false, "comment": "x"}`},
	{"db", `{"collMod": "c", "index": {"keyPattern": {"b": 1}, "expireAfterSeconds": 5, "hidden": false}, "validator": {}, "validationLevel": "off", "validationAction": "warn", "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"collMod": "c", "index": {"name": "b_1", "expireAfterSeconds": 5}, "recordPreImages": false}`},
	{"db", `{"collMod": "v", "viewOn": "c", "pipeline": []}`},
	{"db", `{"drop": "c", "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"dropDatabase": 1, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"admin", `{"renameCollection": "db.c", "to": "db.d", "dropTarget": true, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"convertToCapped": "c", "size": 4096, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"cloneCollectionAsCapped": "c", "toCollection": "d", "size": 4096, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"collStats": "c", "scale": 1}`},
	{"db", `{"dbStats": 1, "scale": 1}`},
	{"db", `{"dataSize": "db.c", "keyPattern": {"_id": 1}, "min": {"_id": 0}, "max": {"_id": 9}, "estimate": true}`},
	{"db", `{"validate": "c", "full": true, "repair": false, "background": false}`},
	{"db", `{"compact": "c", "force": true, "comment": "x"}`},
	{"db", `{"reIndex": "c"}`},
	{"db", `{"getMore": {"$numberLong": "1"}, "collection": "c", "batchSize": 1, "maxTimeMS": 1, "comment": "x"}`},
	{"db", `{"killCursors": "c", "cursors": [{"$numberLong": "1"}], "comment": "x"}`},
	{"db", `{"dbHash": 1, "collections": ["c"]}`},
	{"db", `{"planCacheClear": "c", "query": {"a": 1}, "sort": {"a": 1}, "projection": {"a": 1}}`},
	{"db", `{"planCacheListFilters": "c"}`},
	{"db", `{"planCacheSetFilter": "c", "query": {"a": 1}, "sort": {"a": 1}, "projection": {"a": 1}, "collation": {"locale": "en"}, "indexes": [{"a": 1}]}`},
	{"db", `{"planCacheClearFilters": "c", "query": {"a": 1}}`},
	{"db", `{"profile": 0, "slowms": 100, "sampleRate": 1.0}`},
	{"db", `{"mapReduce": "c", "map": "function() {}", "reduce": "function() {}", "out": {"inline": 1}, "query": {}, "sort": {"_id": 1}, "limit": 1, "scope": {}, "jsMode": false, "verbose": true, "bypassDocumentValidation": false, "collation": {"locale": "en"}, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"mapReduce": "c", "map": "function() {}", "reduce": "function() {}", "finalize": "function() {}", "out": {"replace": "x", "db": "db", "sharded": false, "nonAtomic": false}}`},
	{"db", `{"createUser": "u", "pwd": "p", "customData": {}, "roles": [{"role": "read", "db": "db"}], "digestPassword": true, "writeConcern": {"w": 1}, "authenticationRestrictions": [{"clientSource": ["127.0.0.1"], "serverAddress": ["127.0.0.1"]}], "mechanisms": ["SCRAM-SHA-1"], "comment": "x"}`},
	{"db", `{"updateUser": "w", "pwd": "p", "customData": {}, "roles": [{"role": "read", "db": "db"}], "digestPassword": true, "writeConcern": {"w": 1}, "authenticationRestrictions": [{"clientSource": ["127.0.0.1"]}], "mechanisms": ["SCRAM-SHA-1"], "comment": "x"}`},
	{"db", `{"dropUser": "w", "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"dropAllUsersFromDatabase": 1, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"grantRolesToUser": "w", "roles": ["read"], "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"revokeRolesFromUser": "w", "roles": [{"role": "read", "db": "db"}], "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"usersInfo": {"user": "w", "db": "db"}, "showCredentials": false, "showPrivileges": false, "showAuthenticationRestrictions": false, "filter": {}, "comment": "x"}`},
	{"db", `{"createRole": "s", "privileges": [{"resource": {"db": "db", "collection": "c"}, "actions": ["find"]}], "roles": ["read"], "authenticationRestrictions": [{"serverAddress": ["127.0.0.1"]}], "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"updateRole": "r", "privileges": [{"resource": {"db": "db", "collection": "c"}, "actions": ["find"]}], "roles": ["read"], "authenticationRestrictions": [], "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"dropRole": "r", "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"dropAllRolesFromDatabase": 1, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"grantPrivilegesToRole": "r", "privileges": [{"resource": {"db": "db", "collection": "c"}, "actions": ["find"]}], "writeConcern": {"w": 1}, "comment": "x"}`},
	{"db", `{"revokePrivilegesFromRole": "r", "privileges": [{"resource": {"db": "db", "collection": "c"}, "actions": ["find"]}], "writeConcern": {"w": 1}}`},
	{"db", `{"grantRolesToRole": "r", "roles": ["read"], "writeConcern": {"w": 1}}`},
	{"db", `{"revokeRolesFromRole": "r", "roles": ["read"], "writeConcern": {"w": 1}}`},
	{"db", `{"rolesInfo": "r", "showPrivileges": true, "showBuiltinRoles": false, "showAuthenticationRestrictions": false, "comment": "x"}`},
	{"db", `{"invalidateUserCache": 1}`},
	{"db", `{"connectionStatus": 1, "showPrivileges": true}`},
	{"db", `{"saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": {"$binary": {"base64": "biwsbj11LHI9YWJj", "subType": "00"}}, "options": {"skipEmptyExchange": true}, "autoAuthorize": 1}`},
	{"db", `{"saslContinue": 1, "conversationId": 1, "payload": {"$binary": {"base64": "", "subType": "00"}}}`},
	{"db", `{"authenticate": 1, "mechanism": "MONGODB-X509", "user": "u"}`},
	{"db", `{"logout": 1}`},
	{"db", `{"ping": 1, "comment": "x"}`},
	{"db", `{"buildInfo": 1, "comment": "x"}`},
	{"db", `{"whatsmyuri": 1}`},
	{"db", `{"listCommands": 1}`},
	{"admin", `{"hostInfo": 1}`},
	{"admin", `{"isMaster": 1, "saslSupportedMechs": "db.u", "comment": "x", "hostInfo": "x", "maxAwaitTimeMS": 1, "topologyVersion": {"processId": {"$oid": "507f1f77bcf86cd799439011"}, "counter": {"$numberLong": "1"}}, "compression": ["zlib"]}`},
	{"admin", `{"serverStatus": 1, "repl": 0, "metrics": 0, "locks": 0}`},
	{"admin", `{"getParameter": 1, "quiet": 1, "comment": "x"}`},
	{"admin", `{"setParameter": 1, "quiet": false, "comment": "x"}`},
	{"admin", `{"getCmdLineOpts": 1}`},
	{"admin", `{"getLog": "global"}`},
	{"admin", `{"logRotate": 1}`},
	{"admin", `{"setFeatureCompatibilityVersion": "4.4", "writeConcern": {"w": 1}}`},
	{"admin", `{"currentOp": 1, "$ownOps": true, "$all": true, "comment": "x"}`},
	{"admin", `{"killOp": 1, "op": 1, "comment": "x"}`},
	{"admin", `{"fsync": 1, "lock": false, "comment": "x"}`},
	{"admin", `{"top": 1}`},
	{"admin", `{"lockInfo": 1}`},
	{"admin", `{"connPoolStats": 1}`},
	{"admin", `{"connPoolSync": 1}`},
	{"admin", `{"startSession": 1}`},
	{"admin", `{"endSessions": [{"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}], "comment": "x"}`},
	{"admin", `{"refreshSessions": [{"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}]}`},
	{"admin", `{"killSessions": [{"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}]}`},
	{"admin", `{"killAllSessions": [{"user": "u", "db": "db"}]}`},
	{"admin", `{"killAllSessionsByPattern": [{"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}, "uid": {"$binary": {"base64": "", "subType": "00"}}}, "uid": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "subType": "00"}}, "users": [{"user": "u", "db": "db"}], "roles": [{"role": "r", "db": "db"}]}]}`},
	{"admin", `{"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}, "defaultWriteConcern": {"w": 1, "wtimeout": 1}, "writeConcern": {"w": 1}, "comment": "x"}`},
	{"admin", `{"getDefaultRWConcern": 1, "inMemory": false, "comment": "x"}`},
	{"admin", `{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["none"], "errorCode": 8, "closeConnection": false, "appName": "x", "writeConcernError": {"code": 1, "errmsg": "x"}, "blockConnection": true, "blockTimeMS": 1, "errorLabels": ["x"]}}`},
	{"admin", `{"configureFailPoint": "failCommand", "mode": "off", "data": {}}`},
	{"admin", `{"configureFailPoint": "failCommand", "mode": {"skip": 1}}`},
	{"admin", `{"applyOps": [{"op": "i", "ns": "db.c", "o": {"_id": 100}}, {"op": "u", "ns": "db.c", "o": {"$set": {"a": 1}}, "o2": {"_id": 1}}, {"op": "d", "ns": "db.c", "o": {"_id": 1}}, {"op": "c", "ns": "db.$cmd", "o": {"create": "z"}}, {"op": "n", "ns": "", "o": {}}], "allowAtomic": true, "preCondition": [{"ns": "db.c", "q": {"_id": 1}, "res": {"a": 1}}], "comment": "x"}`},
	{"admin", `{"replSetGetStatus": 1, "initialSync": 0}`},
	{"admin", `{"replSetGetConfig": 1, "commitmentStatus": false, "comment": "x"}`},
	{"admin", `{"replSetFreeze": 0}`},
	{"admin", `{"commitTransaction": 1, "lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAQ==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false, "writeConcern": {"w": 1}, "recoveryToken": {}}`},
	{"db", `{"find": "c", "lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAQ==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false, "startTransaction": true, "readConcern": {"level": "snapshot", "afterClusterTime": {"$timestamp": {"t": 1, "i": 1}}}, "$clusterTime": {"clusterTime": {"$timestamp": {"t": 1, "i": 1}}, "signature": {"hash": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "subType": "00"}}, "keyId": {"$numberLong": "0"}}}, "$readPreference": {"mode": "primary", "tags": [{"a": "b"}], "maxStalenessSeconds": 100, "hedge": {"enabled": true}}}`},
	{"db", `{"count": "c", "$readPreference": {"mode": "nearest", "tags": [{"a": "b"}], "maxStalenessSeconds": 100, "hedge": {"enabled": true}}, "$client": {}, "$audit": {}, "$configServerState": {}, "$replData": 1, "$oplogQueryData": {}}`},
	{"db", `{"getLastError": 1, "w": 1, "wtimeout": 1, "j": true, "fsync": false}`},
	{"db", `{"getPrevError": 1}`},
	{"db", `{"resetError": 1}`},
	{"db", `{"listShards": 1}`}, {"admin", `{"listShards": 1}`},
	{"admin", `{"enableSharding": "db2", "primaryShard": "shard-1", "writeConcern": {"w": 1}, "comment": "x"}`},
	{"admin", `{"shardCollection": "db.u", "key": {"a": 1}, "unique": false, "numInitialChunks": 2, "collation": {"locale": "simple"}, "comment": "x"}`},
	{"admin", `{"shardCollection": "db.u", "key": {"a": "hashed"}, "numInitialChunks": 2, "presplitHashedZones": false}`},
	{"admin", `{"refineCollectionShardKey": "db.s", "key": {"x": 1, "y": 1}}`},
	{"admin", `{"split": "db.s", "middle": {"x": 5}}`},
	{"admin", `{"split": "db.s", "find": {"x": 5}}`},
	{"admin", `{"split": "db.s", "bounds": [{"x": {"$minKey": 1}}, {"x": {"$maxKey": 1}}]}`},
	{"admin", `{"moveChunk": "db.s", "find": {"x": 5}, "to": "shard-0", "_secondaryThrottle": true, "writeConcern": {"w": 1}, "_waitForDelete": true, "forceJumbo": false, "maxTimeMS": 1000}`},
	{"admin", `{"moveChunk": "db.s", "bounds": [{"x": {"$minKey": 1}}, {"x": {"$maxKey": 1}}], "to": "shard-0"}`},
	{"admin", `{"mergeChunks": "db.s", "bounds": [{"x": {"$minKey": 1}}, {"x": {"$maxKey": 1}}]}`},
	{"admin", `{"movePrimary": "db", "to": "shard-0", "writeConcern": {"w": 1}}`},
	{"admin", `{"addShardToZone": "shard-0", "zone": "z"}`}, {"admin", `{"addShardTag": "shard-0", "tag": "z"}`},
	{"admin", `{"removeShardFromZone": "shard-0", "zone": "z"}`},
	{"admin", `{"updateZoneKeyRange": "db.s", "min": {"x": 1}, "max": {"x": 5}, "zone": "z"}`},
	{"admin", `{"addShard": "rs/127.0.0.1:1", "name": "x", "maxSize": 1}`},
	{"admin", `{"removeShard": "nosuch"}`},
	{"admin", `{"balancerStart": 1, "maxTimeMS": 1000}`}, {"admin", `{"balancerStop": 1, "maxTimeMS": 1000}`}, {"admin", `{"balancerStatus": 1}`},
	{"admin", `{"balancerCollectionStatus": "db.s"}`}, {"admin", `{"clearJumboFlag": "db.s", "find": {"x": 1}}`},
	{"admin", `{"clearJumboFlag": "db.s", "bounds": [{"x": {"$minKey": 1}}, {"x": {"$maxKey": 1}}]}`},
	{"admin", `{"getShardMap": 1}`}, {"admin", `{"getShardVersion": "db.s"}`}, {"admin", `{"flushRouterConfig": 1}`},
	{"admin", `{"isdbgrid": 1}`}, {"admin", `{"netstat": 1}`}, {"admin", `{"multicast": {"ping": 1}, "db": "admin"}`},
	{"admin", `{"cleanupOrphaned": "db.s", "startingFromKey": {"x": 1}}`},
	{"db", `{"filemd5": {"$oid": "507f1f77bcf86cd799439011"}, "root": "fs", "partialOk": false}`},
	{"db", `{"features": 1, "oidReset": 0}`}, {"db", `{"isSelf": 1}`},
	{"admin", `{"dropConnections": 1, "hostAndPort": ["x:1"]}`},
	{"db", `{"setIndexCommitQuorum": "c", "indexNames": ["b_1"], "commitQuorum": 1}`},
}

// oddValues are a value of each type, and some that commands may find odd.
var oddValues = []struct {
	name  string
	value any
}{
	{"double", 1.5}, {"string", "x"}, {"object", bson.D{{Key: "x", Value: int32(1)}}}, {"empty object", bson.D{}}, {"array", bson.A{int32(1)}}, {"empty array", bson.A{}},
	{"binData", bson.Binary{Data: []byte{1}}}, {"undefined", bson.Undefined{}}, {"objectId", bson.ObjectID{1}}, {"bool", true}, {"false", false}, {"date", bson.DateTime(1)}, {"null", nil},
	{"regex", bson.Regex{Pattern: "a"}}, {"dbPointer", bson.DBPointer{DB: "d"}}, {"code", bson.JavaScript("x")}, {"symbol", bson.Symbol("x")}, {"scope", bson.CodeWithScope{Code: "x"}},
	{"int", int32(1)}, {"zero", int32(0)}, {"negative", int32(-1)}, {"timestamp", bson.Timestamp{T: 1}}, {"long", int64(1)}, {"large", int64(1) << 40},
	{"minKey", bson.MinKey{}}, {"maxKey", bson.MaxKey{}}, {"NaN", math.NaN()}, {"empty string", ""},
	{"2^31", int64(1) << 31}, {"2^63-1", int64(math.MaxInt64)}, {"-2^63", int64(math.MinInt64)}, {"decimal", decimal128("1.5")}, {"decimal 1", decimal128("1")},
	{"decimal NaN", decimal128("NaN")}, {"infinity", math.Inf(1)}, {"1e300", 1e300}, {"negative double", -1.5},
}

func decimal128(text string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(text)
	if err != nil {
		panic(err)
	}
	return d
}

// argumentVariants calls do with the command changed at one place: each field of it and of the
// documents in it has a value of each type, or is left out, or stands there twice, or beside one
// that there is not. what says which of these it is.
func argumentVariants(d bson.D, do func(path, what string, d bson.D)) {
	for i, e := range d {
		with := func(v any) bson.D {
			changed := slices.Clone(d)
			changed[i].Value = v
			return changed
		}
		for _, w := range oddValues {
			do(e.Key, w.name, with(w.value))
		}
		if i > 0 {
			do(e.Key, "missing", slices.Delete(slices.Clone(d), i, i+1))
		}
		do(e.Key, "twice", slices.Insert(slices.Clone(d), i+1, e))
		deeper := func(path, what string, v any) { do(e.Key+"."+path, what, with(v)) }
		switch v := e.Value.(type) {
		case bson.D:
			if len(v) > 0 {
				argumentVariants(v, func(path, what string, d bson.D) { deeper(path, what, d) })
			}
		case bson.A:
			for j, x := range v {
				set := func(x any) bson.A {
					changed := slices.Clone(v)
					changed[j] = x
					return changed
				}
				for _, w := range oddValues {
					deeper(fmt.Sprint(j), w.name, set(w.value))
				}
				if x, ok := x.(bson.D); ok {
					argumentVariants(x, func(path, what string, d bson.D) { deeper(fmt.Sprint(j)+"."+path, what, set(d)) })
				}
			}
		}
	}
	do("noSuchField", "unknown", append(slices.Clone(d), bson.E{Key: "noSuchField", Value: int32(1)}))
}

// askArguments sends variants of each command to deployments, one in so many, and calls do with
// the errors.
func askArguments(t *testing.T, version string, do func(question, answers)) {
	dial := func(topology mongotest.Option) net.Conn {
		d := mongotest.Start(t, topology, mongotest.Version(version), mongotest.InMemory(), mongotest.NoScripting())
		c := dialNode(t, d, d.Node(0))
		prepareArguments(t, c)
		return c
	}
	standalone, set, mongos := dial(mongotest.Standalone()), dial(mongotest.ReplicaSet(1)), dial(mongotest.Sharded(1, 1))
	draw := rand.New(rand.NewPCG(*argumentsSeed, 0))
	for _, w := range wholeCommands {
		var cmd bson.D
		if err := bson.UnmarshalExtJSON([]byte(w.cmd), &cmd); err != nil {
			t.Fatalf("%s: %v", w.cmd, err)
		}
		argumentVariants(cmd, func(path, what string, variant bson.D) {
			if draw.IntN(*argumentsEvery) != 0 {
				return
			}
			variant = append(slices.Clone(variant), bson.E{Key: "$db", Value: w.db})
			a := answers{standalone: askVariant(t, standalone, variant), set: askVariant(t, set, variant), mongos: askVariant(t, mongos, variant)}
			draw.Shuffle(len(variant)-1, func(i, j int) { variant[i+1], variant[j+1] = variant[j+1], variant[i+1] })
			a.shuffled = askVariant(t, set, variant)
			do(question{cmd[0].Key, path, what}, a)
		})
	}
}

// askVariant sends a command and returns its error. What the command may have changed, even if its
// write concern failed, is made anew.
func askVariant(t *testing.T, c net.Conn, cmd bson.D) string {
	raw, err := bson.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	reply := command(t, c, raw)
	answer := errorOf(reply)
	if e, _ := reply.Lookup("writeErrors", "0").Document(); len(e) > 0 {
		answer = "write " + errorOf(e)
	}
	if answer == "ok" || strings.HasPrefix(answer, "write ") || strings.Contains(answer, "Error details: ") {
		prepareArguments(t, c)
	}
	return answer
}

// prepareArguments makes the state that the commands are for.
func prepareArguments(t *testing.T, c net.Conn) {
	askText(t, c, "admin", `{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}, "writeConcern": {"w": 1}}`)
	for _, cmd := range []string{
		`{"dropDatabase": 1}`, `{"dropAllUsersFromDatabase": 1}`, `{"dropAllRolesFromDatabase": 1}`,
		`{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": [1]}]}`, `{"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b_1", "expireAfterSeconds": 1000000}]}`,
		`{"create": "v", "viewOn": "c"}`, `{"createUser": "w", "pwd": "p", "roles": []}`, `{"createRole": "r", "privileges": [], "roles": []}`,
	} {
		ok(t, askText(t, c, "db", cmd))
	}
	askText(t, c, "admin", `{"enableSharding": "db"}`)
	askText(t, c, "admin", `{"shardCollection": "db.s", "key": {"x": 1}}`)
}
