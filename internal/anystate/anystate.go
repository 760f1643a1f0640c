// Package anystate brings a deployment into a random state, and describes the state that one is in:
// what is kept, copied or restored has to have the same description as before.
package anystate

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"allium"
	"allium/bson"
)

// Options say what a deployment can have.
type Options struct {
	// Major is the first number of its version.
	Major int
	// Accounts asks for users and roles.
	Accounts bool
	// NoEmptyTimestamps leaves out what servers replace when it is inserted again.
	NoEmptyTimestamps bool
	// Databases are the names to choose from; nil: names of all sorts.
	Databases []string
}

// A maker runs random commands.
type maker struct {
	ctx    context.Context
	client *allium.Client
	r      *rand.Rand
	o      Options
}

type (
	d = bson.D
	e = bson.E
	a = bson.A
)

var databases = []string{"app", "a+b", "x%20y", "Größe", "other_db", "admin"}

// The longest name, when escaped, has to be cut in the name of a file.
var collections = []string{"plain", "with space", "a+b", "c%2Bd", "ä/ö", "dots.in.name", "x.bson", "UPPER",
	"colon:star*", strings.Repeat("ü", 100), strings.Repeat("ü", 99) + "x"}

// Make fills a deployment with what comes out of the random numbers. What the server refuses is not
// there then; an error is one of the connection.
func Make(ctx context.Context, client *allium.Client, r *rand.Rand, o Options) error {
	m := &maker{ctx: ctx, client: client, r: r, o: o}
	names := o.Databases
	if names == nil {
		names = databases
	}
	for range 1 + r.IntN(3) {
		db := names[r.IntN(len(names))]
		for range 1 + r.IntN(4) {
			m.collection(db, collections[r.IntN(len(collections))])
		}
		if r.IntN(3) == 0 {
			m.run(db, d{{Key: "insert", Value: "system.js"},
				{Key: "documents", Value: a{d{{Key: "_id", Value: "f"},
					{Key: "value", Value: bson.JavaScript("function() { return 1 }")}}}}})
		}
	}
	if o.Accounts {
		m.accounts()
	}
	_, err := client.Database("admin").RunCommand(ctx, d{{Key: "ping", Value: 1}})
	return err
}

// run runs a command and reports whether it was done.
func (m *maker) run(db string, cmd d) bool {
	_, err := m.client.Database(db).RunCommand(m.ctx, cmd)
	return err == nil
}

func (m *maker) chance(n int) bool { return m.r.IntN(n) == 0 }

func (m *maker) collection(db, name string) {
	options := d{}
	kind := m.r.IntN(7)
	series := kind == 0 && m.o.Major >= 5 && db != "admin"
	switch {
	case series:
		spec := d{{Key: "timeField", Value: "t"}}
		if !m.chance(3) {
			spec = append(spec, e{Key: "metaField", Value: "m"})
		}
		spec = append(spec, e{Key: "granularity", Value: []string{"seconds", "minutes", "hours"}[m.r.IntN(3)]})
		options = append(options, e{Key: "timeseries", Value: spec})
		if m.chance(2) {
			options = append(options, e{Key: "expireAfterSeconds", Value: int64(1 << 31)})
		}
	case kind == 1:
		options = append(options, e{Key: "capped", Value: true}, e{Key: "size", Value: 4096 << m.r.IntN(3)})
		if m.chance(2) {
			options = append(options, e{Key: "max", Value: 1 + m.r.IntN(5)})
		}
	case kind == 2 && m.o.Major >= 6:
		spec := d{{Key: "key", Value: d{{Key: "_id", Value: 1}}}, {Key: "unique", Value: true}}
		if m.chance(2) {
			spec = append(spec, e{Key: "name", Value: "a name of mine"})
		}
		options = append(options, e{Key: "clusteredIndex", Value: spec})
		if m.chance(2) {
			options = append(options, e{Key: "expireAfterSeconds", Value: int64(1 << 31)})
		}
	case kind == 3:
		on := collections[m.r.IntN(len(collections))]
		options = append(options, e{Key: "viewOn", Value: on},
			e{Key: "pipeline", Value: a{d{{Key: "$match",
				Value: d{{Key: "n", Value: d{{Key: "$gte", Value: m.r.IntN(3)}}}}}},
				d{{Key: "$project", Value: d{{Key: "n", Value: 1}}}}}})
	}
	if m.chance(3) {
		options = append(options, e{Key: "collation", Value: m.collation()})
	}
	if m.chance(4) && m.o.Major >= 6 {
		options = append(options, e{Key: "changeStreamPreAndPostImages", Value: d{{Key: "enabled", Value: true}}})
	}
	m.run(db, append(d{{Key: "create", Value: name}}, options...))
	if kind == 3 {
		return
	}
	for range m.r.IntN(30) {
		doc := m.document(3)
		if series {
			doc = append(d{{Key: "t", Value: bson.DateTime(1.7e12 + m.r.Float64()*1e9)},
				{Key: "m", Value: m.r.IntN(3)}}, doc...)
		}
		m.run(db, d{{Key: "insert", Value: name}, {Key: "documents", Value: a{doc}}})
	}
	for range m.r.IntN(5) {
		m.run(db, d{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: a{m.index()}}})
	}
	// It is younger than the documents.
	if m.chance(3) {
		m.run(db, d{{Key: "collMod", Value: name},
			{Key: "validator", Value: d{{Key: "n", Value: d{{Key: "$type", Value: "int"}}}}},
			{Key: "validationLevel", Value: []string{"strict", "moderate"}[m.r.IntN(2)]},
			{Key: "validationAction", Value: []string{"error", "warn"}[m.r.IntN(2)]}})
	}
}

func (m *maker) collation() d {
	c := d{{Key: "locale", Value: []string{"de", "fr", "en_US", "sv"}[m.r.IntN(4)]},
		{Key: "strength", Value: 1 + m.r.IntN(4)}}
	if m.chance(2) {
		c = append(c, e{Key: "numericOrdering", Value: true})
	}
	return c
}

// index returns the description of an index of any kind.
func (m *maker) index() d {
	var key d
	options := d{}
	switch m.r.IntN(9) {
	case 0:
		key = d{{Key: "h", Value: "hashed"}}
	case 1:
		key = d{{Key: "s", Value: "text"}}
		if m.chance(2) {
			key = d{{Key: "n", Value: 1}, {Key: "s", Value: "text"}, {Key: "v.s", Value: "text"}, {Key: "h", Value: 1}}
			options = append(options, e{Key: "weights", Value: d{{Key: "s", Value: 1 + m.r.IntN(9)}}})
		}
		if m.chance(2) {
			options = append(options, e{Key: "default_language", Value: "german"},
				e{Key: "language_override", Value: "idioma"})
		}
		if m.chance(2) {
			options = append(options, e{Key: "textIndexVersion", Value: 2 + m.r.IntN(2)})
		}
	case 2:
		key = d{{Key: "$**", Value: "text"}}
	case 3:
		key = d{{Key: "place", Value: "2dsphere"}}
	case 4:
		key = d{{Key: "flat", Value: "2d"}, {Key: "n", Value: 1}}
		options = append(options, e{Key: "bits", Value: 10 + m.r.IntN(10)}, e{Key: "min", Value: -10.5},
			e{Key: "max", Value: 500})
	case 5:
		key = d{{Key: "$**", Value: 1}}
		if m.chance(2) {
			options = append(options,
				e{Key: "wildcardProjection", Value: d{{Key: "n", Value: 1}, {Key: "v.s", Value: 1}}})
		}
	case 6:
		key = d{{Key: "when", Value: 1}}
		options = append(options, e{Key: "expireAfterSeconds", Value: 1 << 30})
	default:
		key = d{{Key: []string{"n", "s", "v.n", "h"}[m.r.IntN(4)], Value: 1 - 2*m.r.IntN(2)}}
		if m.chance(2) {
			key = append(key, e{Key: "k", Value: -1})
		}
	}
	if m.chance(4) {
		options = append(options, e{Key: "unique", Value: true})
	}
	if m.chance(4) {
		options = append(options, e{Key: "sparse", Value: true})
	} else if m.chance(3) {
		options = append(options, e{Key: "partialFilterExpression",
			Value: d{{Key: "n", Value: d{{Key: "$gt", Value: m.r.IntN(4)}}}}})
	}
	if m.chance(4) {
		options = append(options, e{Key: "collation", Value: m.collation()})
	}
	if m.chance(5) {
		options = append(options, e{Key: "hidden", Value: true})
	}
	return append(d{{Key: "key", Value: key}, {Key: "name", Value: fmt.Sprintf("index %d", m.r.IntN(1000))}},
		options...)
}

// document returns a document with values of all types.
func (m *maker) document(depth int) d {
	doc := d{}
	if depth == 3 {
		switch m.r.IntN(5) {
		case 0:
			doc = append(doc, e{Key: "_id", Value: m.value(2)})
		case 1:
			doc = append(doc, e{Key: "_id", Value: m.r.IntN(1000)})
		}
	}
	doc = append(doc, e{Key: "n", Value: m.r.IntN(6)}, e{Key: "s", Value: m.text()})
	for _, key := range []string{"v", "h", "k", "empty", "", "Ünïcode"} {
		if m.chance(2) {
			doc = append(doc, e{Key: key, Value: m.value(depth)})
		}
	}
	if m.chance(3) {
		doc = append(doc, e{Key: "place", Value: d{{Key: "type", Value: "Point"},
			{Key: "coordinates", Value: a{m.r.Float64() * 100, m.r.Float64() * 50}}}})
	}
	if m.chance(3) {
		doc = append(doc, e{Key: "flat", Value: a{m.r.Float64() * 100, m.r.Float64() * 50}})
	}
	return doc
}

func (m *maker) text() string {
	words := []string{"mice", "and", "Männer", "läuft", "running", "\u0000zero", "数据", ""}
	return words[m.r.IntN(len(words))] + " " + words[m.r.IntN(len(words))]
}

func (m *maker) value(depth int) any {
	switch m.r.IntN(22) {
	case 0:
		return int32(m.r.Uint32())
	case 1:
		return int64(m.r.Uint64())
	case 2:
		return []float64{0, math.Copysign(0, -1), math.Inf(1), math.NaN(), 1.5, 1e300}[m.r.IntN(6)]
	case 3, 4:
		return m.text()
	case 5, 6:
		if depth > 0 {
			return m.document(depth - 1)
		}
	case 7, 8:
		if depth > 0 {
			list := a{}
			for range m.r.IntN(4) {
				list = append(list, m.value(depth-1))
			}
			return list
		}
	case 9:
		return bson.Binary{Subtype: []byte{0, 4, 5, 0x80}[m.r.IntN(4)], Data: []byte("0123456789abcdef")}
	case 10:
		return bson.NewObjectID()
	case 11:
		return m.chance(2)
	case 12:
		return bson.DateTime(m.r.Int64N(4e12) - 1e12)
	case 13:
		return bson.Null{}
	case 14:
		return bson.Regex{Pattern: "^a", Options: "i"}
	case 15:
		return bson.JavaScript("1")
	case 16:
		ts := bson.Timestamp{T: m.r.Uint32N(2), I: m.r.Uint32N(2)}
		if m.o.NoEmptyTimestamps {
			ts.T = 1
		}
		return ts
	case 17:
		return bson.MinKey{}
	case 18:
		return bson.MaxKey{}
	case 19:
		v, err := bson.ParseDecimal128([]string{"1.10", "-0E+3", "NaN", "-Infinity",
			"9.999999999999999999999999999999999E+6144"}[m.r.IntN(5)])
		if err != nil {
			panic(err)
		}
		return v
	case 20:
		return bson.Symbol("symbol")
	}
	return m.r.IntN(10)
}

// accounts makes users and roles.
func (m *maker) accounts() {
	names := m.o.Databases
	if names == nil {
		names = []string{"app", "other_db", "admin"}
	}
	for range m.r.IntN(4) {
		role := d{{Key: "createRole", Value: fmt.Sprintf("role%d", m.r.IntN(5))}, {Key: "privileges", Value: a{
			d{{Key: "resource", Value: d{{Key: "db", Value: "app"},
				{Key: "collection", Value: []string{"", "plain", "with space"}[m.r.IntN(3)]}}},
				{Key: "actions", Value: a{"find", "insert"}}}}},
			{Key: "roles", Value: a{"read"}}}
		if m.chance(2) {
			role = append(role, e{Key: "authenticationRestrictions",
				Value: a{d{{Key: "clientSource", Value: a{"127.0.0.1"}}}}})
		}
		m.run([]string{"app", "admin"}[m.r.IntN(2)], role)
	}
	for i := range 1 + m.r.IntN(4) {
		db := names[m.r.IntN(len(names))]
		user := d{{Key: "createUser", Value: fmt.Sprintf("user.%d ä", i)}, {Key: "pwd", Value: "secret"},
			{Key: "roles", Value: a{"readWrite"}}}
		if m.chance(2) {
			user = append(user, e{Key: "mechanisms", Value: a{[]string{"SCRAM-SHA-1", "SCRAM-SHA-256"}[m.r.IntN(2)]}})
		}
		if m.chance(2) {
			user = append(user, e{Key: "customData", Value: m.document(2)})
		}
		if m.chance(3) {
			user = append(user, e{Key: "authenticationRestrictions",
				Value: a{d{{Key: "clientSource", Value: a{"127.0.0.1"}}}}})
		}
		if m.run(db, user) && m.chance(2) {
			m.run(db, d{{Key: "grantRolesToUser", Value: user[0].Value}, {Key: "roles",
				Value: a{d{{Key: "role", Value: fmt.Sprintf("role%d", m.r.IntN(5))}, {Key: "db", Value: "app"}}}}})
		}
	}
	if m.chance(2) {
		m.run("$external", d{{Key: "createUser", Value: "CN=client,O=anybody"},
			{Key: "roles", Value: a{d{{Key: "role", Value: "read"}, {Key: "db", Value: "app"}}}}})
	}
}

// Describe returns what commands say about a deployment: the database "admin" with users and roles,
// and everything but "config" and "local". The keys are commands with their namespaces.
func Describe(ctx context.Context, client *allium.Client) (map[string]string, error) {
	all := map[string]string{}
	names, err := client.ListDatabaseNames(ctx)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "config" || name == "local" })
	all["listDatabases"] = fmt.Sprint(names)
	for _, name := range names {
		if err := describeDatabase(ctx, client.Database(name), all); err != nil {
			return nil, err
		}
	}
	admin := client.Database("admin")
	reply, err := admin.RunCommand(ctx, d{{Key: "usersInfo", Value: d{{Key: "forAllDBs", Value: true}}}})
	if err != nil {
		return nil, fmt.Errorf("usersInfo: %w", err)
	}
	users, _ := reply.Lookup("users").Array()
	for v := range users.Values() {
		doc, _ := v.Document()
		reply, err := admin.RunCommand(ctx, d{{Key: "usersInfo",
			Value: d{{Key: "user", Value: doc.Lookup("user")}, {Key: "db", Value: doc.Lookup("db")}}},
			{Key: "showCredentials", Value: true}, {Key: "showPrivileges", Value: true},
			{Key: "showAuthenticationRestrictions", Value: true}})
		if err != nil {
			return nil, fmt.Errorf("usersInfo: %w", err)
		}
		all["usersInfo "+fmt.Sprint(doc.Lookup("_id"))] = fmt.Sprint(reply.Lookup("users"))
	}
	for _, db := range names {
		reply, err := client.Database(db).RunCommand(ctx, d{{Key: "rolesInfo", Value: 1},
			{Key: "showPrivileges", Value: true}, {Key: "showAuthenticationRestrictions", Value: true}})
		if err != nil {
			return nil, fmt.Errorf("rolesInfo: %w", err)
		}
		all["rolesInfo "+db] = fmt.Sprint(reply.Lookup("roles"))
	}
	return all, nil
}

func describeDatabase(ctx context.Context, db *allium.Database, all map[string]string) error {
	list, err := drain(ctx, db, d{{Key: "listCollections", Value: 1}})
	if err != nil {
		return err
	}
	for _, info := range list {
		name, _ := info.Lookup("name").StringValue()
		if strings.HasPrefix(name, "system.") && name != "system.js" {
			continue
		}
		kind, _ := info.Lookup("type").StringValue()
		ns := " " + db.Name() + "." + name
		all["listCollections"+ns] = fmt.Sprint(kind, info.Lookup("options"), info.Lookup("idIndex"))
		if kind != "view" {
			indexes, err := drain(ctx, db, d{{Key: "listIndexes", Value: name}})
			if err != nil {
				return err
			}
			text := ""
			for _, index := range indexes { // the order of their options is the server's business
				var options []string
				for key, v := range index.All() {
					if key != "ns" {
						options = append(options, fmt.Sprint(key, ": ", v))
					}
				}
				slices.Sort(options)
				text += fmt.Sprintln(options)
			}
			all["listIndexes"+ns] = text
		}
		if kind == "collection" {
			stats, err := db.RunCommand(ctx, d{{Key: "collStats", Value: name}})
			if err != nil {
				return fmt.Errorf("collStats%s: %w", ns, err)
			}
			for _, field := range []string{"ns", "count", "size", "avgObjSize", "capped", "max", "maxSize",
				"nindexes"} {
				all["collStats"+ns] += fmt.Sprint(field, ": ", stats.Lookup(field), " ")
			}
		}
		docs, err := drain(ctx, db, d{{Key: "find", Value: name}})
		if err != nil {
			all["find"+ns] = err.Error()
			continue
		}
		if kind == "timeseries" { // nor are a measurement's fields
			for i, doc := range docs {
				if docs[i], err = sorted(doc); err != nil {
					return err
				}
			}
		}
		if kind != "collection" { // a time series' buckets are in no order
			slices.SortFunc(docs, func(a, b bson.Raw) int { return bytes.Compare(a, b) })
		}
		all["find"+ns] = fmt.Sprint(docs)
	}
	return nil
}

// sorted returns a document with its fields in order.
func sorted(doc bson.Raw) (bson.Raw, error) {
	fields := d{}
	for key, v := range doc.All() {
		fields = append(fields, e{Key: key, Value: v})
	}
	slices.SortFunc(fields, func(a, b e) int { return strings.Compare(a.Key, b.Key) })
	return bson.Marshal(fields)
}

// drain returns all documents of a command's cursor.
func drain(ctx context.Context, db *allium.Database, cmd d) ([]bson.Raw, error) {
	cur, err := allium.RunCursorCommand[bson.Raw](ctx, db, cmd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd[0].Key, err)
	}
	return cur.All(ctx)
}

// Differences lists, line by line, where a description is not the other.
func Differences(got, want map[string]string) (lines []string) {
	for what := range want {
		if got[what] != want[what] {
			at := 0 // both show what differs
			for at < min(len(got[what]), len(want[what])) && got[what][at] == want[what][at] {
				at++
			}
			at = max(0, at-200)
			lines = append(lines, fmt.Sprintf("%s, from byte %d:\n  is   %s\n  want %s", what, at,
				excerpt(got[what], at), excerpt(want[what], at)))
		}
	}
	for what := range got {
		if _, ok := want[what]; !ok {
			lines = append(lines, what+" is new: "+got[what])
		}
	}
	slices.Sort(lines)
	return lines
}

func excerpt(s string, at int) string {
	at = min(at, len(s))
	return strings.ToValidUTF8(s[at:min(at+1000, len(s))], "")
}
