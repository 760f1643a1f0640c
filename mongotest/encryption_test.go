package mongotest_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/fle"
	"allium/internal/fle/analysis"
	"allium/internal/spectest"
	"allium/mongotest"
)

// encClient is a client with automatic Queryable Encryption, reduced to what the server sees of it.
type encClient struct {
	t      *testing.T
	conn   net.Conn
	keys   map[bson.UUID]*fle.Key
	fields map[string]bson.Raw // encryptedFields by namespace
}

// do runs a command of the database db. Errors of the client and of the server are alike.
func (c *encClient) do(db string, cmd bson.D) (bson.Raw, error) {
	c.t.Helper()
	body := doc(c.t, cmd)
	namespaces, err := analysis.Namespaces(db, body)
	if err != nil {
		return nil, err
	}
	schemas := map[string]*analysis.Schema{}
	schema := bson.D{}
	for _, ns := range namespaces {
		schemas[ns] = nil
		if fields := c.fields[ns]; fields != nil {
			if schemas[ns], err = analysis.ParseEncryptedFields(ns, fields); err != nil {
				return nil, err
			}
			schema = append(schema, bson.E{Key: ns, Value: fields})
		}
	}
	got, err := analysis.Analyze(db, body, schemas)
	if err != nil {
		return nil, err
	}
	sealed, err := fle.Replace(nil, got.Command, func(data []byte) (bson.RawValue, bool, error) {
		if fle.Kind(data[0]) != fle.KindPlaceholder {
			return bson.RawValue{}, false, nil
		}
		p, err := fle.ParsePlaceholder(data)
		if err != nil {
			return bson.RawValue{}, false, err
		}
		out, err := p.Seal(c.keys[p.IndexKey], c.keys[p.UserKey], rand.Reader)
		return fle.Value(out), true, err
	})
	if err != nil {
		return nil, err
	}
	var d bson.D
	if err := bson.Unmarshal(sealed, &d); err != nil {
		c.t.Fatal(err)
	}
	info := bson.E{Key: "encryptionInformation", Value: bson.D{{Key: "type", Value: 1}, {Key: "schema", Value: schema}}}
	switch {
	case got.Encrypts && d[0].Key == "bulkWrite":
		d.Set("nsInfo", bson.A{bson.D{{Key: "ns", Value: namespaces[0]}, info}})
	case got.Encrypts:
		d = append(d, info)
	}
	reply, err := c.plain(db, d)
	if err != nil {
		return nil, err
	}
	return fle.Replace(nil, reply, c.open)
}

// open decrypts a value of a reply.
func (c *encClient) open(data []byte) (bson.RawValue, bool, error) {
	s, ok, err := fle.ParseSealed(data)
	if err != nil || !ok {
		return bson.RawValue{}, false, err
	}
	if s.Indexed() {
		if s, err = s.Inner(c.keys[s.KeyID]); err != nil {
			return bson.RawValue{}, false, err
		}
	}
	v, err := s.Open(c.keys[s.KeyID])
	return v, true, err
}

// plain runs a command as it is.
func (c *encClient) plain(db string, cmd bson.D) (bson.Raw, error) {
	c.t.Helper()
	reply := command(c.t, c.conn, doc(c.t, append(cmd, bson.E{Key: "$db", Value: db})))
	if !reply.Lookup("ok").AsBool() {
		text, _ := reply.Lookup("errmsg").StringValue()
		return nil, fmt.Errorf("server: %s", text)
	}
	if text, ok := reply.Lookup("writeErrors", "0", "errmsg").StringValue(); ok {
		return nil, fmt.Errorf("server: %s", text)
	}
	return reply, nil
}

// specFile is a file of the specification's tests, reduced to what the server can answer for.
type specFile struct {
	RunOnRequirements []struct{ MaxServerVersion string }
	CreateEntities    []struct {
		Client *struct {
			ID              string
			AutoEncryptOpts *struct {
				BypassQueryAnalysis bool
				EncryptedFieldsMap  map[string]bson.Raw
				KmsProviders        bson.Raw
			}
		}
		Database   *struct{ ID, Client, DatabaseName string }
		Collection *struct{ ID, Database, CollectionName string }
	}
	InitialData []struct {
		DatabaseName, CollectionName string
		CreateOptions                bson.Raw
		Documents                    []bson.Raw
	}
	Tests []struct {
		Description string
		Operations  []struct {
			Name, Object string
			Arguments    bson.Raw
			ExpectError  bson.Raw
			ExpectResult bson.RawValue
		}
		Outcome []struct {
			DatabaseName, CollectionName string
			Documents                    []bson.Raw
		}
	}
}

const localMasterKey = "Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRCZGJkTXVyZG9uSjFk"

// queryFile matches the files that insert, change and find.
var queryFile = regexp.MustCompile(`^(fle2v2-(Rangev2-.*-(Aggregate|Correctness|Delete|FindOneAndUpdate|InsertFind|Update)|Rangev2-(Defaults|WrongType)|` +
	`InsertFind-(Un)?[iI]ndexed|Update|FindOneAndUpdate|Delete)|QE-Text-(prefix|suffix|substring)(Preview)?)\.json$`)

// TestQueryableEncryption runs the specification's tests of Queryable Encryption with a client of a
// few lines: what is found, and the tags of every document, are those of a real server.
func TestQueryableEncryption(t *testing.T) {
	ran := 0
	for _, pattern := range []string{"fle2v2-*", "QE-Text-*"} {
		for _, path := range spectest.Files(t, "client-side-encryption/tests/unified/"+pattern+".json") {
			if !queryFile.MatchString(filepath.Base(path)) {
				continue // the others are about the client
			}
			var file specFile
			if err := bson.UnmarshalExtJSON(spectest.Read(t, path), &file); err != nil {
				t.Fatal(err)
			}
			for i := range file.Tests {
				ran++
				t.Run(strings.TrimSuffix(filepath.Base(path), ".json")+"/"+file.Tests[i].Description, func(t *testing.T) { runSpec(t, &file, i) })
			}
		}
	}
	if ran < 50 {
		t.Errorf("only %d tests", ran)
	}
}

func runSpec(t *testing.T, file *specFile, n int) {
	version := "9.0"
	if strings.HasPrefix(file.RunOnRequirements[0].MaxServerVersion, "8.") {
		version = "8.2"
	}
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(version))
	c := &encClient{t: t, conn: dial(t, d.Hosts()[0]), keys: map[bson.UUID]*fle.Key{}, fields: map[string]bson.Raw{}}
	encrypted := map[string]bool{}
	databases, colls := map[string][2]string{}, map[string][2]string{} // client and name; database's id and name
	for _, e := range file.CreateEntities {
		switch {
		case e.Client != nil:
			encrypted[e.Client.ID] = e.Client.AutoEncryptOpts != nil
			if o := e.Client.AutoEncryptOpts; o != nil && o.BypassQueryAnalysis {
				t.Fatal("the client bypasses query analysis")
			}
		case e.Database != nil:
			databases[e.Database.ID] = [2]string{e.Database.Client, e.Database.DatabaseName}
		case e.Collection != nil:
			colls[e.Collection.ID] = [2]string{e.Collection.Database, e.Collection.CollectionName}
		}
	}
	master, err := base64.StdEncoding.DecodeString(localMasterKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range file.InitialData {
		for _, doc := range data.Documents {
			id, _ := doc.Lookup("_id").Binary()
			wrapped, isKey := doc.Lookup("keyMaterial").Binary()
			if !isKey {
				t.Fatalf("initial document %s", doc)
			}
			material, err := fle.UnwrapKey(master, wrapped.Data)
			if err != nil {
				t.Fatal(err)
			}
			key, err := fle.NewKey(material)
			if err != nil {
				t.Fatal(err)
			}
			c.keys[bson.UUID(id.Data)] = key
		}
		if fields, ok := data.CreateOptions.Lookup("encryptedFields").Document(); ok {
			c.fields[data.DatabaseName+"."+data.CollectionName] = fields
			if _, err := c.plain(data.DatabaseName, bson.D{{Key: "create", Value: data.CollectionName}, {Key: "encryptedFields", Value: fields}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	test := &file.Tests[n]
	for _, op := range test.Operations {
		coll, ok := colls[op.Object]
		if !ok {
			t.Fatalf("operation %s on %s", op.Name, op.Object)
		}
		db := databases[coll[0]]
		do := c.plain
		if encrypted[db[0]] {
			do = c.do
		}
		got, err := operation(do, db[1], coll[1], op.Name, op.Arguments)
		if want, ok := op.ExpectError.Lookup("errorContains").StringValue(); ok || op.ExpectError != nil {
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
				t.Errorf("%s %s: error %v, want %q", op.Name, op.Arguments, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", op.Name, op.Arguments, err)
			continue
		}
		if op.ExpectResult.Type != 0 && !like(op.ExpectResult, got, true) {
			t.Errorf("%s %s:\ngot  %s\nwant %s", op.Name, op.Arguments, got, op.ExpectResult)
		}
	}
	for _, o := range test.Outcome {
		reply, err := c.plain(o.DatabaseName, bson.D{{Key: "find", Value: o.CollectionName}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		got := reply.Lookup("cursor", "firstBatch")
		if want, _ := bson.MarshalValue(o.Documents); !like(want, got, true) {
			t.Errorf("outcome %s, want %s", got, want)
		}
	}
}

// operation runs an operation of a test and returns its result in the form of the tests.
func operation(do func(string, bson.D) (bson.Raw, error), db, coll, name string, args bson.Raw) (bson.RawValue, error) {
	arg := args.Lookup
	pick := func(reply bson.Raw, err error, path ...string) (bson.RawValue, error) {
		return reply.Lookup(path...), err
	}
	switch name {
	case "insertOne":
		_, err := do(db, bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: bson.A{arg("document")}}})
		return bson.RawValue{}, err
	case "find":
		cmd := bson.D{{Key: "find", Value: coll}, {Key: "filter", Value: arg("filter")}}
		if v := arg("sort"); v.Type != 0 {
			cmd = append(cmd, bson.E{Key: "sort", Value: v})
		}
		reply, err := do(db, cmd)
		return pick(reply, err, "cursor", "firstBatch")
	case "aggregate":
		reply, err := do(db, bson.D{{Key: "aggregate", Value: coll}, {Key: "pipeline", Value: arg("pipeline")}, {Key: "cursor", Value: bson.D{}}})
		return pick(reply, err, "cursor", "firstBatch")
	case "updateOne", "replaceOne":
		u := arg("update")
		if u.Type == 0 {
			u = arg("replacement")
		}
		reply, err := do(db, bson.D{{Key: "update", Value: coll}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: arg("filter")}, {Key: "u", Value: u}}}}})
		if err != nil {
			return bson.RawValue{}, err
		}
		return bson.MarshalValue(bson.D{{Key: "matchedCount", Value: reply.Lookup("n")}, {Key: "modifiedCount", Value: reply.Lookup("nModified")}, {Key: "upsertedCount", Value: 0}})
	case "deleteOne":
		reply, err := do(db, bson.D{{Key: "delete", Value: coll}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: arg("filter")}, {Key: "limit", Value: 1}}}}})
		if err != nil {
			return bson.RawValue{}, err
		}
		return bson.MarshalValue(bson.D{{Key: "deletedCount", Value: reply.Lookup("n")}})
	case "findOneAndUpdate":
		reply, err := do(db, bson.D{{Key: "findAndModify", Value: coll}, {Key: "query", Value: arg("filter")}, {Key: "update", Value: arg("update")}})
		return pick(reply, err, "value")
	}
	return bson.RawValue{}, fmt.Errorf("the test knows no operation %s", name)
}

// like compares as the unified test format says. root: documents may have more fields than are
// expected.
func like(want, got bson.RawValue, root bool) bool {
	switch want.Type {
	case bson.TypeEmbeddedDocument:
		if name, ok := bson.Raw(want.Value).Lookup("$$type").StringValue(); ok {
			return map[string]bson.Type{"binData": bson.TypeBinary, "array": bson.TypeArray}[name] == got.Type
		}
		if v := bson.Raw(want.Value).Lookup("$$unsetOrMatches"); v.Type != 0 {
			return got.Type == 0 || like(v, got, root)
		}
		if got.Type != bson.TypeEmbeddedDocument {
			return false
		}
		n := 0
		for key, v := range bson.Raw(want.Value).All() {
			found := bson.Raw(got.Value).Lookup(key)
			if !like(v, found, false) {
				return false
			}
			n++
		}
		if root {
			return true
		}
		for range bson.Raw(got.Value).All() {
			n--
		}
		return n == 0
	case bson.TypeArray:
		if got.Type != bson.TypeArray {
			return false
		}
		next := bson.Raw(got.Value)
		i := 0
		for v := range bson.Raw(want.Value).Values() {
			if !like(v, next.Lookup(fmt.Sprint(i)), root) {
				return false
			}
			i++
		}
		return next.Lookup(fmt.Sprint(i)).Type == 0
	}
	if want.IsNumber() && got.IsNumber() {
		return bson.Compare(want, got) == 0
	}
	return want.Type == got.Type && bytes.Equal(want.Value, got.Value)
}
