package admin

import (
	"math"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{Name: "currentOp", Needs: server.OnCluster("inprog"), AdminOnly: true,
		Where: server.Anywhere, Run: runCurrentOp})
	server.Register(&server.Command{Name: "killOp", Needs: server.OnCluster("killop"), AdminOnly: true,
		Where: server.Anywhere, Run: runKillOp})
}

func runCurrentOp(r *server.Request, dst []byte) ([]byte, error) {
	// Fields that are no options are a filter.
	first := true
	f, err := query.ParseFilter(bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range r.Body.All() {
			if !first && !r.Generic(k) && k != "$all" && k != "$ownOps" && k != "$truncateOps" && k != "allUsers" {
				d.B = bson.AppendRawValue(d.B, k, v)
			}
			first = false
		}
	}), r.FullOptions(r.DB, nil, nil))
	if err != nil {
		return dst, err
	}
	at, dst := bson.BeginArrayElement(dst, "inprog")
	i := 0
	ops := r.Node.CurrentOps(r.Body.Lookup("$all").AsBool(), r.Body.Lookup("$truncateOps").AsBool())
	for _, o := range append(ops, r.Node.InactiveTransactions()...) {
		match, err := f.Match(o)
		if err != nil {
			return dst, err
		}
		if match {
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), o...)
			i++
		}
	}
	dst = bson.EndDocument(dst, at)
	if r.Node.FsyncLocks().Load() > 0 {
		dst = bsondoc.Append(dst, "fsyncLock", true,
			"info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock")
	}
	return dst, nil
}

func runKillOp(r *server.Request, dst []byte) ([]byte, error) {
	v := r.Body.Lookup("op")
	switch s, ok := v.StringValue(); {
	case r.Routing == nil:
	case ok:
		return killShardOp(r, dst, s)
	case v.IsZero():
		return dst, srverr.New(50759, "Did not provide \"op\" field")
	case !v.IsNumber():
		return dst, srverr.New(50760, "\"op\" field was of unsupported type %s", bsontext.TypeName(v.Type))
	}
	switch {
	case v.IsZero():
		return dst, srverr.New(srverr.NoSuchKey, "Missing expected field \"op\"")
	case !v.IsNumber():
		return dst, srverr.New(srverr.TypeMismatch, "Expected field \"op\" to have numeric type, but found %s",
			bsontext.TypeName(v.Type))
	}
	id, exact := v.AsInt64()
	if !exact {
		return dst, srverr.New(
			srverr.BadValue, "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found %s", bsontext.Element("op", v))
	}
	if id < math.MinInt32 || id > math.MaxInt32 {
		return dst, srverr.New(26823, "invalid op : %d. Op ID cannot be represented with 32 bits", id)
	}
	r.Node.KillOp(id)
	if r.Routing != nil {
		return dst, nil
	}
	return bson.AppendString(dst, "info", "attempting to kill op"), nil
}

// killShardOp answers a mongos's killOp of an operation on a shard ("shard:id"), which runs none of
// its own.
func killShardOp(r *server.Request, dst []byte, op string) ([]byte, error) {
	shard, text, ok := strings.Cut(op, ":")
	if !ok || shard == "" || text == "" {
		return dst, srverr.New(28625, "The op argument to killOp must be of the format shardid:opid but found \"%s\"",
			op)
	}
	if r.Node.Data().ShardNumber(shard) < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", shard)
	}
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return dst, srverr.New(srverr.FailedToParse, "Did not consume whole string.")
	}
	return bsondoc.Append(dst, "shard", shard, "shardid", int32(id)), nil
}
