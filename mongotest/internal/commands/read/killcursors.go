package read

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "killCursors", Help: "Kill a list of cursor ids",
		Needs: server.NeedsBy("killAnyCursor for the cursors of others", needsOfKillCursors), API: server.V1,
		DataLake: true, Where: server.Anywhere,
		Txn: server.TxnLater, Run: runKillCursors,
	})
}

// needsOfKillCursors says that the cursors of others are killed by those only who may kill any.
func needsOfKillCursors(r *server.Request, body bson.Raw) []account.Need {
	var ids []int64
	list, _ := body.Lookup("cursors").Array()
	for v := range list.Values() {
		if id, ok := v.Int64(); ok {
			ids = append(ids, id)
		}
	}
	if r.Node.Cursors().OfOthers(r, ids) {
		return []account.Need{{Action: "killAnyCursor"}}
	}
	return nil
}

func runKillCursors(r *server.Request, dst []byte) ([]byte, error) {
	idl := r.Version().AtLeast(4, 9)
	name, ok := r.Arg().StringValue()
	list := r.Body.Lookup("cursors")
	if err := args.CheckFields(r, r.Cmd.Name, "cursors"); err != nil {
		return dst, err
	}
	switch {
	case !ok && r.Version().AllParsed():
		return dst, srverr.New(srverr.InvalidNamespace, "Failed to parse namespace element")
	case !ok && idl:
		return dst, args.WrongType("killCursors.killCursors", r.Arg().Type, "string")
	case !ok:
		return dst, srverr.New(srverr.FailedToParse, "First parameter must be a string in: %s",
			bsontext.Document(r.Body))
	case idl && list.IsZero() || args.IsNull(list) && r.Version().AllParsed():
		return dst, args.MissingField("killCursors.cursors")
	case idl && list.Type != bson.TypeArray:
		return dst, args.WrongType("killCursors.cursors", list.Type, "array")
	case name == "":
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid collection name: %s.", r.DB)
	case list.Type != bson.TypeArray:
		return dst, srverr.New(srverr.FailedToParse, "Field 'cursors' must be of type array in: %s",
			bsontext.Document(r.Body))
	}
	var ids []int64
	for k, v := range bson.Raw(list.Value).All() {
		id, ok := v.Int64()
		if !ok && args.IsNull(v) && r.Version().AllParsed() {
			continue
		}
		if !ok {
			if idl {
				return dst, args.WrongType("killCursors.cursors."+k, v.Type, "long")
			}
			return dst, srverr.New(srverr.FailedToParse,
				"Field 'cursors' contains an element that is not of type long: %s", bsontext.Element(k, v))
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 && !idl {
		return dst, srverr.New(srverr.BadValue, "Must specify at least one cursor id in: %s", bsontext.Document(r.Body))
	}
	var killed, missing []int64
	for _, id := range ids {
		if r.Node.Cursors().Kill(func(c *server.Cursor) bool { return c.ID == id && !c.Killed }) > 0 {
			killed = append(killed, id)
		} else {
			missing = append(missing, id)
		}
	}
	dst = appendInt64s(dst, "cursorsKilled", killed)
	dst = appendInt64s(dst, "cursorsNotFound", missing)
	dst = appendInt64s(dst, "cursorsAlive", nil)
	return appendInt64s(dst, "cursorsUnknown", nil), nil
}

func appendInt64s(dst []byte, key string, list []int64) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, n := range list {
		dst = bson.AppendInt64Value(bson.AppendIndexHeader(dst, bson.TypeInt64, i), n)
	}
	return bson.EndDocument(dst, at)
}
