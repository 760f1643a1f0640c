package analysis

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"allium/bson"
	"allium/internal/crypt"
	"allium/internal/fle"
)

// The property that this package is for: whatever the schema and the command, either the command is
// refused, or no value that belongs to an encrypted field is left in what is sent: neither beside
// the placeholders of the analysis, nor in what they become under keys.
//
//	go test ./internal/fle/analysis -run TestSafety -safety.cases 1000000 -safety.seed 1
//
// Commands are made from a grammar that knows more than the analysis does, wrong commands among
// them. The grammar has a model of its own of what is encrypted where: a tree of names.
var (
	safetyCases = flag.Int("safety.cases", 1000, "how many random commands TestSafety tries")
	safetySeed  = flag.Uint64("safety.seed", 1, "the first seed of TestSafety; every case has one of its own")
)

func TestSafety(t *testing.T) {
	var mu sync.Mutex
	var accepted, withSecrets int
	sent := map[Kind]int{} // commands with an encrypted value of a kind
	refusals := map[string]int{}
	keys := safetyKeys(t)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < *safetyCases && !t.Failed(); i += workers {
				g := newGenerator(*safetySeed + uint64(i))
				g.keys = keys
				ok, err := g.check()
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", *safetySeed+uint64(i), err)
				}
				if ok && g.refused == nil {
					accepted++
					for kind := range g.sent {
						sent[kind]++
					}
					if len(g.secrets) > 0 {
						withSecrets++
					}
				} else if g.refused != nil {
					refusals[reasonOf(g.refused)]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d commands: %d accepted, %d of those with values to encrypt; %d reasons for refusals", *safetyCases, accepted, withSecrets, len(refusals))
	t.Logf("commands sent with values of each kind: %v", sent)
	for _, kind := range []Kind{Deterministic, Random, Unindexed, Equality, Range, Text} {
		if sent[kind] < *safetyCases/200 {
			t.Errorf("only %d commands with values of the kind %v were sent: the grammar has lost its sense", sent[kind], kind)
		}
	}
	if testing.Verbose() {
		for reason, n := range refusals {
			t.Logf("%6d %s", n, reason)
		}
	}
	if withSecrets < *safetyCases/20 {
		t.Errorf("only %d commands with values to encrypt were accepted: the grammar has lost its sense", withSecrets)
	}
}

func reasonOf(err error) string {
	if e, ok := err.(*Error); ok {
		return e.Reason
	}
	return err.Error()
}

// safetyKeys are the keys that schemas of the grammar name, and one for every alternative name.
func safetyKeys(t testing.TB) *crypt.Keys {
	v := &safetyVault{}
	k := crypt.NewKeys(v, v, 0)
	t.Cleanup(k.Close)
	for _, id := range testKeys {
		d, err := k.NewDocument(t.Context(), value(bson.D{{Key: "provider", Value: "local"}}).Value, nil, nil, crand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		d.ID = id
		v.docs = append(v.docs, d)
	}
	return k
}

// safetyVault is a key vault and its key service.
type safetyVault struct{ docs []*crypt.Document }

var safetyMaster = make([]byte, fle.KeySize)

func (v *safetyVault) Keys(_ context.Context, filter bson.Raw) ([]bson.Raw, error) {
	var out []bson.Raw
	for i, d := range v.docs {
		d := *d
		asked := false
		ids, _ := filter.Lookup("$or", "0", "_id", "$in").Array()
		for id := range ids.Values() {
			b, _ := id.Binary()
			asked = asked || bytes.Equal(b.Data, d.ID[:])
		}
		names, _ := filter.Lookup("$or", "1", "keyAltNames", "$in").Array()
		for name := range names.Values() {
			if s, _ := name.StringValue(); i == 0 {
				d.AltNames, asked = append(d.AltNames, s), true
			}
		}
		if asked {
			out = append(out, d.Append(nil))
		}
	}
	return out, nil
}

func (v *safetyVault) Wrap(_ context.Context, masterKey bson.Raw, material []byte) (bson.Raw, []byte, error) {
	wrapped, err := fle.WrapKey(safetyMaster, material, crand.Reader)
	return masterKey, wrapped, err
}

func (v *safetyVault) Unwrap(_ context.Context, _ bson.Raw, wrapped []byte) ([]byte, error) {
	return fle.UnwrapKey(safetyMaster, wrapped)
}

// model is what the grammar knows of the fields of a document.
type model struct {
	kind Kind // not 0: encrypted
	typ  bson.Type
	kids map[string]*model
}

var alphabet = []string{"a", "b", "c", "k1", "k2", "z", "0"}

// find returns the model at a path, and whether an encrypted field is at it or above it.
func (m *model) find(path string) (found *model, encrypted bool) {
	for key := range strings.SplitSeq(path, ".") {
		if m == nil {
			return nil, false
		}
		if m.kind != 0 {
			return m, true
		}
		if c, known := m.kids[key]; known || !isIndex(key) && !strings.HasPrefix(key, "$") {
			m = c
		}
	}
	return m, m != nil && m.kind != 0
}

// holds reports whether anything in m is encrypted.
func (m *model) holds() bool {
	if m == nil || m.kind != 0 {
		return m != nil
	}
	for _, c := range m.kids {
		if c.holds() {
			return true
		}
	}
	return false
}

func (m *model) set(path string, c *model) *model {
	key, below, deeper := strings.Cut(path, ".")
	out := &model{kids: map[string]*model{}}
	if m != nil {
		if m.kind != 0 {
			return m
		}
		for k, c := range m.kids {
			out.kids[k] = c
		}
	}
	if deeper {
		c = out.kids[key].set(below, c)
	}
	out.kids[key] = c
	return out
}

// generator makes one command.
type generator struct {
	*rand.Rand
	queryable bool
	names     []string // that paths and documents are made of
	schemas   map[string]*Schema
	models    map[string]*model
	secrets   [][]byte
	spelt     [][]byte // secrets as an error would print them
	keys      *crypt.Keys
	sent      map[Kind]bool
	wild      [][]byte // secrets if the command's collections have any encrypted field
	cmd       bson.Raw
	refused   error
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 11)), names: alphabet, schemas: map[string]*Schema{}, models: map[string]*model{}}
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// check makes a command and tries it.
func (g *generator) check() (bool, error) {
	g.queryable = g.chance(50)
	for _, ns := range []string{"db.x", "db.y", "db2.x", "db2.y"} {
		if err := g.schema(ns); err != nil {
			g.refused = err
			return false, nil // a schema that is refused refuses everything
		}
	}
	for _, ns := range []string{"db.v", "db.n", "db2.n"} {
		g.schemas[ns], g.models[ns] = nil, &model{}
	}
	g.cmd = g.command()
	if err := g.cmd.Validate(); err != nil {
		return false, fmt.Errorf("the grammar is wrong: %v", err)
	}
	before := slices.Clone(g.cmd)
	got, err := Analyze("db", g.cmd, g.schemas)
	if !bytes.Equal(before, g.cmd) {
		return false, fmt.Errorf("the command was changed: %s", before)
	}
	if err != nil {
		return false, g.refuse(err)
	}
	if err := got.Command.Validate(); err != nil {
		return false, fmt.Errorf("%s became %v", g.cmd, err)
	}
	if got.Encrypts {
		g.secrets = append(g.secrets, g.wild...)
	}
	sent, marks := withoutPlaceholders(got.Command)
	for _, secret := range g.secrets {
		if bytes.Contains(sent, secret) {
			return false, fmt.Errorf("%q is sent in plaintext\ncommand %s\nsent %s", secret, g.cmd, sent)
		}
	}
	if marks != len(got.Marks) {
		return false, fmt.Errorf("%d placeholders, %d marks\ncommand %s\nsent %s", marks, len(got.Marks), g.cmd, sent)
	}
	return g.seal(got)
}

// refuse checks the error of a command that is not sent.
func (g *generator) refuse(err error) error {
	g.refused = err
	for _, secret := range append(g.secrets, g.spelt...) {
		if bytes.Contains([]byte(err.Error()), secret) {
			return fmt.Errorf("the error has a value of the command: %v", err)
		}
	}
	return nil
}

// seal encrypts what the analysis has marked, and looks for values again.
func (g *generator) seal(got Result) (bool, error) {
	sealed, err := g.keys.Encrypt(context.Background(), got.Command, crand.Reader)
	if err != nil {
		return false, g.refuse(err)
	}
	if err := sealed.Validate(); err != nil {
		return false, fmt.Errorf("%s was sealed to %v", g.cmd, err)
	}
	for _, secret := range g.secrets {
		if bytes.Contains(sealed, secret) {
			return false, fmt.Errorf("%x is sent in plaintext\ncommand %s\nsent %s", secret, g.cmd, sealed)
		}
	}
	if _, n := withoutPlaceholders(sealed); n > 0 {
		return false, fmt.Errorf("%d placeholders are sent\ncommand %s\nsent %s", n, g.cmd, sealed)
	}
	g.sent = map[Kind]bool{}
	for _, mark := range got.Marks {
		g.sent[mark.Kind] = true
	}
	return true, nil
}

// withoutPlaceholders returns doc with every placeholder made empty, and how many there were.
func withoutPlaceholders(doc bson.Raw) (bson.Raw, int) {
	n := 0
	out, _ := rewrite(doc, func(_ string, v bson.RawValue) (bson.RawValue, error) {
		switch v.Type {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			inner, k := withoutPlaceholders(v.Value)
			n += k
			return bson.RawValue{Type: v.Type, Value: inner}, nil
		case bson.TypeBinary:
			if kind, ok := fle.KindOf(v); ok && (kind == fle.KindMarking || kind == fle.KindPlaceholder) {
				n++
				return fle.Value([]byte{1}), nil
			}
		}
		return v, nil
	})
	return out, n
}

func value(v any) bson.RawValue {
	raw, err := bson.MarshalValue(v)
	if err != nil {
		panic(err)
	}
	return raw
}

var testKeys = []bson.UUID{{'a', 'a'}, {'b', 'b'}, {'c'}, {'d'}, {'e'}, {'f'}}

// schema makes the schema of a collection.
func (g *generator) schema(ns string) error {
	m := &model{kids: map[string]*model{}}
	g.models[ns] = m
	var err error
	switch {
	case g.chance(10):
		g.schemas[ns] = nil
	case g.queryable:
		var fields bson.A
		for i, path := range []string{"a", "b.a", "b.c", "c.a.b", "k1", "z"} {
			if g.chance(45) {
				f, c := g.field(path, testKeys[i])
				fields, *m = append(fields, f), *m.set(path, c)
			}
		}
		g.schemas[ns], err = ParseEncryptedFields(ns, value(bson.D{{Key: "fields", Value: fields}}).Value)
	default:
		g.schemas[ns], err = ParseJSONSchema(ns, value(g.object(m, 0)).Value, true)
	}
	return err
}

// field makes a field of encryptedFields.
func (g *generator) field(path string, key bson.UUID) (bson.D, *model) {
	f := bson.D{{Key: "path", Value: path}, {Key: "keyId", Value: key}}
	c := &model{kind: pick(g, Unindexed, Equality, Range, Text), typ: bson.TypeString}
	typed := func(name string, t bson.Type, queries any) {
		c.typ = t
		f = append(f, bson.E{Key: "bsonType", Value: name})
		if queries != nil {
			f = append(f, bson.E{Key: "queries", Value: queries})
		}
	}
	switch c.kind {
	case Unindexed:
		if g.chance(50) {
			typed("string", bson.TypeString, nil)
		}
	case Equality:
		query := d("queryType", "equality", "contention", g.IntN(5))
		switch g.IntN(5) {
		case 0:
			typed("long", bson.TypeInt64, bson.A{query})
		case 1:
			typed("int", bson.TypeInt32, query)
		case 2:
			typed("date", bson.TypeDateTime, query)
		default:
			typed("string", bson.TypeString, query)
		}
	case Range:
		g.rangeField(typed)
	case Text:
		query := func(kind string) bson.D {
			if g.chance(30) {
				kind += "Preview"
			}
			q := d("queryType", kind, "strMinQueryLength", 2, "strMaxQueryLength", 20, "caseSensitive", len(path) > 1, "diacriticSensitive", true)
			if strings.HasPrefix(kind, "sub") {
				q = append(q, bson.E{Key: "strMaxLength", Value: 20})
			}
			return q
		}
		typed("string", bson.TypeString, pick[any](g, query("prefix"), query("suffix"), query("substring"), bson.A{query("prefix"), query("suffix")}))
	}
	return f, c
}

// rangeField makes a field with range queries. Its secrets lie within the bounds.
func (g *generator) rangeField(typed func(name string, t bson.Type, queries any)) {
	query := d("queryType", "range", "sparsity", int64(1+g.IntN(4)))
	if g.chance(30) {
		query = append(query, bson.E{Key: "trimFactor", Value: int32(g.IntN(8))})
	}
	bounded := g.chance(50)
	bounds := func(least, greatest any) {
		if bounded {
			query = append(query, bson.E{Key: "min", Value: least}, bson.E{Key: "max", Value: greatest})
		}
	}
	switch g.IntN(5) {
	case 0:
		bounds(int32(0), int32(1<<31-1))
		typed("int", bson.TypeInt32, query)
	case 1:
		bounds(int64(0), int64(1<<63-1))
		typed("long", bson.TypeInt64, query)
	case 2:
		bounds(bson.DateTime(0), bson.DateTime(1<<63-1))
		typed("date", bson.TypeDateTime, query)
	case 3:
		if bounds(-1e6, 1e6); bounded {
			query = append(query, bson.E{Key: "precision", Value: int32(3)})
		}
		typed("double", bson.TypeDouble, query)
	default:
		if bounds(bson.NewDecimal128FromInt64(-1e6), bson.NewDecimal128FromInt64(1e6)); bounded {
			query = append(query, bson.E{Key: "precision", Value: int32(3)})
		}
		typed("decimal", bson.TypeDecimal128, query)
	}
}

// object makes the $jsonSchema of an object, and fills in its model.
func (g *generator) object(m *model, depth int) bson.D {
	props := bson.D{}
	for _, name := range alphabet {
		switch {
		case g.chance(35):
			c, e := g.encrypt()
			m.kids[name], props = c, append(props, bson.E{Key: name, Value: e})
		case g.chance(30) && depth < 3:
			c := &model{kids: map[string]*model{}}
			m.kids[name], props = c, append(props, bson.E{Key: name, Value: g.object(c, depth+1)})
		case g.chance(20):
			m.kids[name] = &model{kids: map[string]*model{}}
			props = append(props, bson.E{Key: name, Value: bson.D{{Key: "bsonType", Value: "string"}}})
		}
	}
	out := bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: props}}
	named := func(name string) bool { _, ok := props.Get(name); return ok }
	pattern := g.chance(20) && !named("k1") && !named("k2")
	if pattern {
		c, e := g.encrypt()
		m.kids["k1"], m.kids["k2"] = c, c
		out = append(out, bson.E{Key: "patternProperties", Value: bson.D{{Key: "^k", Value: e}}})
	}
	if depth > 0 && g.chance(10) {
		c, e := g.encrypt()
		for _, name := range alphabet {
			if !named(name) && !(pattern && name[0] == 'k') {
				m.kids[name] = c
			}
		}
		out = append(out, bson.E{Key: "additionalProperties", Value: e})
	}
	return out
}

// encrypt makes the schema of an encrypted field.
func (g *generator) encrypt() (*model, bson.D) {
	c := &model{kind: Deterministic, typ: bson.TypeString}
	e := bson.D{{Key: "algorithm", Value: "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: bson.A{pick(g, testKeys[:2]...)}}}
	switch {
	case g.chance(20):
		c.typ, e[1].Value = bson.TypeInt64, "long"
	case g.chance(30):
		c.kind, e = Random, bson.D{{Key: "algorithm", Value: "AEAD_AES_256_CBC_HMAC_SHA_512-Random"}, {Key: "keyId", Value: bson.A{pick(g, testKeys[:2]...)}}}
		if g.chance(20) {
			e[1].Value = "/z"
		}
	}
	return c, bson.D{{Key: "encrypt", Value: e}}
}

// path makes a path, more often than not one that leads to or near an encrypted field of m.
func (g *generator) path(m *model) string {
	var parts []string
	for {
		var names []string
		if m != nil {
			for name, c := range m.kids {
				if c.holds() {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		name := pick(g, g.names...)
		if len(names) > 0 && g.chance(75) {
			name = pick(g, names...)
		}
		parts = append(parts, name)
		if m != nil {
			m = m.kids[name]
		}
		if m == nil || m.kind != 0 || len(parts) > 3 {
			break
		}
		if g.chance(15) {
			return strings.Join(parts, ".")
		}
	}
	if g.chance(5) {
		parts = append(parts, pick(g, g.names...))
	}
	if g.chance(3) {
		parts = slices.Insert(parts, g.IntN(len(parts)+1), pick(g, "0", "7"))
	}
	return strings.Join(parts, ".")
}

// secret makes a value for a field that m says is encrypted.
func (g *generator) secret(m *model) any {
	t := bson.TypeString
	if m != nil {
		t = m.typ
	}
	if g.chance(5) {
		t = pick(g, bson.TypeString, bson.TypeInt32, bson.TypeInt64, bson.TypeDateTime, bson.TypeDouble, bson.TypeDecimal128, bson.TypeBinary, bson.TypeArray, bson.TypeEmbeddedDocument)
	}
	n := int64(g.Uint64()>>1 | 1<<62)
	s := fmt.Sprintf("S%015x", n)
	switch t {
	case bson.TypeInt64:
		g.secrets = append(g.secrets, bson.AppendInt64Value(nil, n))
		g.spelt = append(g.spelt, strconv.AppendInt(nil, n, 10))
		return n
	case bson.TypeDateTime:
		g.secrets = append(g.secrets, bson.AppendInt64Value(nil, n))
		return bson.DateTime(n)
	case bson.TypeInt32:
		n := int32(n&(1<<30-1)) | 1<<30
		g.secrets = append(g.secrets, bson.AppendInt32Value(nil, n))
		g.spelt = append(g.spelt, strconv.AppendInt(nil, int64(n), 10))
		return n
	case bson.TypeDouble:
		f := float64(n>>10) / (1 << 34) // less than 2^20
		g.secrets = append(g.secrets, bson.AppendDoubleValue(nil, f))
		g.spelt = append(g.spelt, strconv.AppendFloat(nil, f, 'f', -1, 64))
		return f
	case bson.TypeDecimal128:
		d, err := bson.ParseDecimal128(fmt.Sprintf("%d.%018d", n>>44, n&(1<<44-1)))
		if err != nil {
			panic(err)
		}
		g.secrets = append(g.secrets, bson.AppendDecimal128Value(nil, d))
		g.spelt = append(g.spelt, []byte(d.String()))
		return d
	}
	g.secrets = append(g.secrets, []byte(s))
	switch t {
	case bson.TypeBinary:
		return bson.Binary{Data: []byte(s)}
	case bson.TypeArray:
		return bson.A{s}
	case bson.TypeEmbeddedDocument:
		return bson.D{{Key: pick(g, g.names...), Value: s}}
	}
	return s
}

// unplaced makes a value for a place that the analysis must not know.
func (g *generator) unplaced() any {
	n := len(g.secrets)
	v := g.secret(nil)
	g.wild, g.secrets = append(g.wild, g.secrets[n:]...), g.secrets[:n]
	return v
}

// public makes a value that may be sent.
func (g *generator) public() any {
	switch g.IntN(8) {
	case 0:
		return int64(g.IntN(100))
	case 1:
		return bson.D{{Key: pick(g, g.names...), Value: "public"}}
	case 2:
		return nil
	case 3:
		return bson.A{"public", 1}
	}
	return "public"
}

// literal makes a value for the field at path.
func (g *generator) literal(m *model, path string) any {
	found, encrypted := m.find(path)
	switch {
	case encrypted:
		return g.secret(found)
	case found.holds() && g.chance(80):
		return g.document(found)
	}
	if found.holds() {
		return pick[any](g, "public", int64(1), nil)
	}
	return g.public()
}

// document makes a document of which m says what is encrypted.
func (g *generator) document(m *model) bson.D {
	doc := bson.D{}
	for range g.IntN(4) + 1 {
		name := pick(g, g.names...)
		var v any
		c := m.kidOf(name)
		switch {
		case c == nil:
			v = g.public()
		case c.kind != 0:
			v = g.secret(c)
		default:
			v = g.document(c)
			if g.chance(5) {
				v = bson.A{v}
			}
		}
		if g.chance(2) {
			if path := g.path(m); strings.Contains(path, ".") {
				name, v = path, g.literal(m, path)
			}
		}
		doc = append(doc, bson.E{Key: name, Value: v})
	}
	return doc
}

func (m *model) kidOf(name string) *model {
	if m == nil {
		return nil
	}
	return m.kids[name]
}

// TestUnrelated: a command that names no encrypted field is sent as it came, but for what normal
// forms add.
func TestUnrelated(t *testing.T) {
	same := 0
	for seed := range uint64(3000) {
		g := newGenerator(seed)
		if g.schema("db.x") != nil || g.schemas["db.x"] == nil {
			continue
		}
		g.names = []string{"p", "q"}
		if g.schemas["db.x"].root.child("p") != nil || g.schemas["db.x"].root.child("q") != nil {
			continue
		}
		m := &model{}
		filter := g.filter(m, 2)
		for _, cmd := range []bson.D{
			d("find", "x", "filter", filter, "sort", d("p", 1), "projection", d("q", 1)),
			d("count", "x", "query", filter),
			d("delete", "x", "deletes", bson.A{d("q", filter, "limit", 0)}),
			d("insert", "x", "documents", bson.A{g.document(m)}),
			d("update", "x", "updates", bson.A{d("q", filter, "u", d("$set", d("p", 1), "$push", d("q", 2)), "multi", true, "upsert", false)}),
			d("aggregate", "x", "pipeline", bson.A{d("$match", filter), d("$sort", d("q", 1))}, "cursor", bson.D{}),
		} {
			raw := bson.Raw(value(cmd).Value)
			got, err := Analyze("db", raw, g.schemas)
			if err != nil {
				continue // the grammar makes operators that are not known
			}
			if !bytes.Equal(got.Command, raw) || len(got.Marks) > 0 {
				t.Fatalf("seed %d: %s became %s", seed, raw, got.Command)
			}
			same++
		}
	}
	if same < 3000 {
		t.Errorf("only %d commands were compared", same)
	}
}
