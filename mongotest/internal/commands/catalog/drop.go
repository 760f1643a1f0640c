package catalog

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name:  "drop",
		Help:  "drop a collection\n{drop : <collectionName>}",
		Needs: server.OnColl("dropCollection"), API: server.V1, WriteConcern: true,
		Mongos: server.OnMongos{Config: true, Catalog: (*server.Request).Namespace, WriteErrors: server.ConcernIfSoon,
			Reply: func(_ *server.Request, _ bson.Raw, dst []byte) []byte {
				return dst
			}, Forgets: server.ForgetsTarget},
		Run: runDrop,
	})
	server.Register(&server.Command{
		Name:  "dropDatabase",
		Help:  "drop (delete) this database",
		Needs: server.OnDB("dropDatabase"), API: server.V1, WriteConcern: true,
		Mongos: server.OnMongos{Config: true, Catalog: (*server.Request).Namespace,
			Forgets: func(r *server.Request) []string {
				return []string{r.DB}
			}, Early: refuseDropEarly, Missing: dropsNothing},
		Run: runDropDatabase,
	})
}

func runDrop(r *server.Request, dst []byte) ([]byte, error) {
	if err := args.CheckFields(r, r.Cmd.Name, "collectionUUID", "isTimeseriesNamespace"); err != nil {
		return dst, err
	}
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	switch {
	case ns == "local.oplog.rs" && r.Node.Set() != nil:
		return dst, &srverr.Error{Msg: "can't drop live oplog while replicating"}
	case ns == "admin.system.version":
		return dst, srverr.New(srverr.IllegalOperation, "can't drop system collection %s", ns)
	}
	_, name := namespace.Split(ns)
	if name == "system.profile" && r.Node.Profiles(r.DB) {
		return dst, srverr.New(srverr.IllegalOperation, "turn off profiling before dropping system.profile collection")
	}
	var indexes int
	found := false
	err = r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		if found = c != nil; !found {
			return nil
		}
		if strings.HasPrefix(name, "system.") && name != "system.profile" && name != "system.views" {
			return srverr.New(srverr.IllegalOperation, "can't drop system collection %s", ns)
		}
		indexes = len(c.Indexes())
		if c.View {
			indexes = -1
			if err := forgetView(tx, ns); err != nil {
				return err
			}
		}
		return tx.Drop(c)
	})
	if err != nil {
		return dst, err
	}
	if !found {
		if r.Version().AtLeast(7, 0) || r.Routing != nil {
			return dst, nil
		}
		return dst, srverr.New(srverr.NamespaceNotFound, "ns not found")
	}
	if indexes >= 0 {
		dst = bson.AppendInt32(dst, "nIndexesWas", int32(indexes))
	}
	return bson.AppendString(dst, "ns", ns), nil
}

// dropDatabaseArgs: the command's value has to be 1, but was not looked at by the first versions
// that had a definition.
var dropDatabaseArgs = &args.Table[args.None]{Name: "dropDatabase",
	Value: args.Any[args.None](nil).TypedNumber().Then(func(_ *args.None, v args.Value) error {
		if v.From.Version().AllParsed() && v.Long() != 1 {
			return srverr.New(5255100, "Have to pass 1 as 'dropDatabase' parameter")
		}
		return nil
	}), Old: &args.Old{}}

func runDropDatabase(r *server.Request, dst []byte) ([]byte, error) {
	if err := dropDatabaseArgs.ParseCommand(r, &args.None{}); err != nil {
		return dst, err
	}
	if n, _ := args.NumberOf(r.Arg()); n != 1 && !r.Version().AtLeast(5, 0) {
		return dst, srverr.New(srverr.IllegalOperation, "have to pass 1 as db parameter")
	}
	switch {
	case r.DB == "admin":
		return dst, srverr.New(srverr.IllegalOperation, "Dropping the '%s' database is prohibited.", r.DB)
	case r.DB == "local" && r.Node.Set() != nil:
		return dst, srverr.New(srverr.IllegalOperation, "Cannot drop '%s' database while replication is active", r.DB)
	}
	found, dropped := false, 0
	err := r.Write(func(tx *store.Tx) error {
		found = false
		var list []*store.Coll
		tx.State().Colls(r.DB, func(c *store.Coll) bool {
			list = append(list, c)
			return true
		})
		dropped = len(list)
		for _, c := range list {
			if err := tx.Drop(c); err != nil {
				return err
			}
			found = true
		}
		if found {
			tx.DropDatabase(r.DB)
		}
		if r.Routing != nil {
			r.Node.Data().ForgetDatabase(r.DB)
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	r.Node.ForgetProfile(r.DB)
	if r.Node.Set() != nil {
		if err := awaitDrops(r, found, dropped); err != nil {
			return dst, err
		}
		found = r.Node.Data().Dropping(r.DB, false) || found
	}
	if !found {
		return dst, nil
	}
	if r.Version().AtLeast(6, 0) {
		return dst, nil
	}
	return bson.AppendString(dst, "dropped", r.DB), nil
}

// awaitDrops waits until the write concern that the client gave holds for the drops of a database's
// collections. If it cannot, the database remains, empty, until another attempt.
func awaitDrops(r *server.Request, found bool, dropped int) error {
	if !found || r.WC.Provenance != "clientSupplied" {
		return nil
	}
	failed, err := r.Node.Set().WaitReplication(r, r.Node, r.Conn.Client().LastOp, &r.WC)
	if err != nil || failed == nil {
		return err
	}
	r.Node.Data().Dropping(r.DB, true)
	at := r.Conn.Client().LastOp
	return srverr.New(
		failed.Code, "dropDatabase %s failed waiting for %d collection drop(s) (most recent drop optime: { ts: Timestamp(%d, %d), t: 1 }) to replicate.", r.DB, dropped, at.T, at.I)
}

// refuseDropEarly refuses what cannot be dropped.
func refuseDropEarly(r *server.Request) error {
	if r.DB == "admin" || r.DB == "config" {
		return srverr.New(srverr.IllegalOperation, "Cannot drop the %s database", r.DB)
	}
	if n, ok := args.NumberOf(r.Arg()); !ok || n != 1 {
		return srverr.New(srverr.BadValue, "have to pass 1 as db parameter")
	}
	return nil
}

func dropsNothing(_ *server.Request, dst []byte) (out []byte, done bool, err error) {
	return bson.AppendString(dst, "info", "database does not exist"), true, nil
}
