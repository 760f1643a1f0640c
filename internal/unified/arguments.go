package unified

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/collation"
	"allium/consistency"
)

// arguments are the arguments of an operation. Every one must be asked for: done reports those that
// the operation does not know.
type arguments struct {
	doc  bson.Raw
	used []string
	err  error
}

// raw returns an argument, zero if it is not there.
func (a *arguments) raw(name string) bson.RawValue {
	a.used = append(a.used, name)
	return a.doc.Lookup(name)
}

func (a *arguments) fail(name string, v bson.RawValue, want string) {
	if a.err == nil {
		a.err = fmt.Errorf("argument %s is %v, want %s", name, v, want)
	}
}

// any returns an argument as an operation's option takes it, nil if it is not there.
func (a *arguments) any(name string) any {
	if v := a.raw(name); !v.IsZero() {
		return v
	}
	return nil
}

// required is any for an argument that must be there.
func (a *arguments) required(name string) any {
	a.must(name)
	return a.any(name)
}

func (a *arguments) requiredString(name string) string {
	a.must(name)
	return a.string(name)
}

func (a *arguments) requiredDocument(name string) bson.Raw {
	a.must(name)
	return a.document(name)
}

func (a *arguments) requiredDocuments(name string) []bson.Raw {
	a.must(name)
	return a.documents(name)
}

func (a *arguments) string(name string) string {
	v := a.raw(name)
	s, ok := v.StringValue()
	if !ok && !v.IsZero() {
		a.fail(name, v, "a string")
	}
	return s
}

func (a *arguments) int(name string) int64 {
	v := a.raw(name)
	n, ok := v.AsInt64()
	if !ok && !v.IsZero() {
		a.fail(name, v, "an integer")
	}
	return n
}

func (a *arguments) intp(name string) *int32 {
	if a.doc.Lookup(name).IsZero() {
		a.raw(name)
		return nil
	}
	return new(int32(a.int(name)))
}

func (a *arguments) bool(name string) *bool {
	v := a.raw(name)
	b, ok := v.Boolean()
	if !ok {
		if !v.IsZero() {
			a.fail(name, v, "a boolean")
		}
		return nil
	}
	return &b
}

// is returns a boolean, false if it is not there.
func (a *arguments) is(name string) bool {
	b := a.bool(name)
	return b != nil && *b
}

// strings returns an array of strings, nil if it is not there.
func (a *arguments) strings(name string) []string {
	v := a.raw(name)
	arr, ok := v.Array()
	if !ok && !v.IsZero() {
		a.fail(name, v, "an array")
	}
	var all []string
	for el := range arr.Values() {
		s, ok := el.StringValue()
		if !ok {
			a.fail(name, el, "strings")
		}
		all = append(all, s)
	}
	return all
}

// shaped reports an argument that is missing or not of this shape.
func (a *arguments) shaped(name string, of shape) {
	a.must(name)
	if a.err == nil {
		a.err = of(name, a.doc.Lookup(name))
	}
}

// must reports arguments that are missing.
func (a *arguments) must(names ...string) {
	for _, name := range names {
		if a.doc.Lookup(name).IsZero() && a.err == nil {
			a.err = fmt.Errorf("argument %s is missing", name)
		}
	}
}

func (a *arguments) millis(name string) time.Duration {
	return time.Duration(a.int(name)) * time.Millisecond
}

// timeout returns timeoutMS, nil if it is not there.
func (a *arguments) timeout() *time.Duration { return a.millisp("timeoutMS") }

func (a *arguments) millisp(name string) *time.Duration {
	if a.doc.Lookup(name).IsZero() {
		a.raw(name)
		return nil
	}
	return new(a.millis(name))
}

func (a *arguments) document(name string) bson.Raw {
	v := a.raw(name)
	d, ok := v.Document()
	if !ok && !v.IsZero() {
		a.fail(name, v, "a document")
	}
	return d
}

func (a *arguments) documents(name string) []bson.Raw {
	v := a.raw(name)
	arr, ok := v.Array()
	if !ok && !v.IsZero() {
		a.fail(name, v, "an array")
	}
	var docs []bson.Raw
	for el := range arr.Values() {
		d, ok := el.Document()
		if !ok {
			a.fail(name, el, "documents")
		}
		docs = append(docs, d)
	}
	return docs
}

func (a *arguments) collation() *allium.Collation {
	d := a.document("collation")
	if d == nil {
		return nil
	}
	var in struct {
		Locale          string
		CaseLevel       *bool               `bson:"caseLevel"`
		CaseFirst       collation.CaseFirst `bson:"caseFirst"`
		Strength        collation.Strength
		NumericOrdering *bool `bson:"numericOrdering"`
		Alternate       collation.Alternate
		MaxVariable     collation.MaxVariable `bson:"maxVariable"`
		Normalization   *bool
		Backwards       *bool
	}
	if err := strict.Unmarshal(d, &in); err != nil && a.err == nil {
		a.err = err
	}
	c := allium.Collation(in)
	return &c
}

func (a *arguments) readConcern(name string) *consistency.ReadConcern {
	d := a.document(name)
	if d == nil {
		return nil
	}
	sub := arguments{doc: d}
	rc := &consistency.ReadConcern{Level: consistency.ReadLevel(sub.string("level"))}
	a.adopt(&sub)
	return rc
}

func (a *arguments) writeConcern(name string) *consistency.WriteConcern {
	d := a.document(name)
	if d == nil {
		return nil
	}
	sub := arguments{doc: d}
	wc := &consistency.WriteConcern{Journal: sub.bool("journal"), Timeout: sub.millis("wtimeoutMS")}
	if v := sub.raw("w"); !v.IsZero() {
		if s, ok := v.StringValue(); ok {
			wc.W = s
		} else if n, ok := v.AsInt64(); ok {
			wc.W = int(n)
		} else {
			sub.fail("w", v, "a number or a string")
		}
	}
	a.adopt(&sub)
	return wc
}

var modes = map[string]consistency.ReadMode{"primary": consistency.Primary,
	"primaryPreferred": consistency.PrimaryPreferred, "secondary": consistency.Secondary,
	"secondaryPreferred": consistency.SecondaryPreferred, "nearest": consistency.Nearest}

func (a *arguments) readPreference(name string) *consistency.ReadPreference {
	d := a.document(name)
	if d == nil {
		return nil
	}
	sub := arguments{doc: d}
	mode := sub.string("mode")
	for m := range modes {
		if strings.EqualFold(m, mode) {
			mode = m
		}
	}
	m, ok := modes[mode]
	if !ok {
		sub.fail("mode", d.Lookup("mode"), "a read preference mode")
	}
	rp := &consistency.ReadPreference{Mode: m,
		MaxStaleness: time.Duration(sub.int("maxStalenessSeconds")) * time.Second}
	for _, set := range sub.documents("tagSets") {
		tags := map[string]string{}
		for k, v := range set.All() {
			tags[strings.Clone(k)], _ = v.StringValue()
		}
		rp.TagSets = append(rp.TagSets, tags)
	}
	if hedge := sub.document("hedge"); hedge != nil {
		rp.Hedge = new(hedge.Lookup("enabled").AsBool())
	}
	a.adopt(&sub)
	return rp
}

// adopt takes over what is wrong with the arguments of a document inside.
func (a *arguments) adopt(sub *arguments) {
	if err := sub.done(); err != nil && a.err == nil {
		a.err = err
	}
}

// done reports an argument that is wrong or was not asked for.
func (a *arguments) done() error {
	if a.err != nil {
		return a.err
	}
	for key := range a.doc.All() {
		if !slices.Contains(a.used, key) {
			return fmt.Errorf("argument %q is not known", strings.Clone(key))
		}
	}
	return nil
}
