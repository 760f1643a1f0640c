package change

import (
	"slices"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/store"
)

// delta is what an update changed, as change events describe it.
type delta struct {
	updated   []change
	removed   []string
	truncated []truncation
}

type change struct {
	path  []string
	value bson.RawValue
}

type truncation struct {
	path string
	size int
}

// AppendUpdateDescription appends updateDescription. arrays adds truncatedArrays (since 5.0),
// disambiguated disambiguatedPaths.
func AppendUpdateDescription(doc []byte, e *store.Entry, arrays, disambiguated bool) []byte {
	d := delta{}
	if paths, ok := e.Delta().([]string); ok {
		d.byPaths(paths, e.Before(), e.After(), arrays)
	} else {
		d.compare(nil, e.Before(), e.After())
	}
	slices.SortStableFunc(d.updated, func(a, b change) int { return slices.Compare(a.path, b.path) })
	slices.Sort(d.removed)
	at, doc := bson.BeginDocumentElement(doc, "updateDescription")
	fields, doc := bson.BeginDocumentElement(doc, "updatedFields")
	for _, c := range d.updated {
		doc = bson.AppendRawValue(doc, strings.Join(c.path, "."), c.value)
	}
	doc = bson.EndDocument(doc, fields)
	doc = bsondoc.AppendStrings(doc, "removedFields", d.removed)
	if arrays {
		list, dd := bson.BeginArrayElement(doc, "truncatedArrays")
		for i, t := range d.truncated {
			one, x := bson.BeginDocument(bson.AppendIndexHeader(dd, bson.TypeEmbeddedDocument, i))
			x = bson.AppendString(x, "field", t.path)
			x = bson.AppendInt32(x, "newSize", int32(t.size))
			dd = bson.EndDocument(x, one)
		}
		doc = bson.EndDocument(dd, list)
	}
	if disambiguated {
		doc = d.appendDisambiguated(doc, e)
	}
	return bson.EndDocument(doc, at)
}

// UpdatePaths returns the paths that the operators of an update name; nil if they depend on the
// document, so that comparing the versions says more.
func UpdatePaths(u bson.Raw) []string {
	var paths []string
	for op, v := range u.All() {
		fields, _ := v.Document()
		for path, arg := range fields.All() {
			if strings.Contains(path, "$") {
				return nil
			}
			paths = append(paths, strings.Clone(path))
			if to, ok := arg.StringValue(); ok && op == "$rename" {
				paths = append(paths, to)
			}
		}
	}
	return paths
}

// byPaths describes the changes at the paths that the update named.
func (d *delta) byPaths(paths []string, before, after bson.Raw, whole bool) {
	for _, path := range paths {
		parts := strings.Split(path, ".")
		was, is := lookupPath(before, parts), lookupPath(after, parts)
		switch {
		case was.Equal(is):
		case is.Type == 0:
			d.removed = append(d.removed, path)
		case is.Type == bson.TypeArray && was.Type == bson.TypeArray && d.appended(parts, was.Value, is.Value):
		default:
			if whole {
				// What is new as a whole is shown as a whole.
				for i := 1; i < len(parts); i++ {
					if lookupPath(before, parts[:i]).Type == 0 {
						parts, is = parts[:i], lookupPath(after, parts[:i])
						break
					}
				}
			}
			d.set(parts, is)
		}
	}
}

func (d *delta) set(path []string, v bson.RawValue) {
	for _, c := range d.updated {
		if slices.Equal(c.path, path) {
			return
		}
	}
	d.updated = append(d.updated, change{slices.Clone(path), v})
}

// appended describes an array that only grew at its end by the new elements.
func (d *delta) appended(path []string, was, is bson.Raw) bool {
	if len(is) <= len(was) || !strings.HasPrefix(string(is[4:]), string(was[4:len(was)-1])) {
		return false
	}
	n := 0
	for range was.Values() {
		n++
	}
	i := 0
	for v := range is.Values() {
		if i >= n {
			d.set(append(slices.Clone(path), strconv.Itoa(i)), v)
		}
		i++
	}
	return true
}

// lookupPath follows a path through documents and, by index, arrays.
func lookupPath(doc bson.Raw, path []string) bson.RawValue { return doc.Lookup(path...) }

// compare describes the difference of two versions of a document.
func (d *delta) compare(path []string, before, after bson.Raw) {
	for k, was := range before.All() {
		is := after.Lookup(k)
		at := append(slices.Clone(path), strings.Clone(k))
		switch {
		case is.Type == 0:
			d.removed = append(d.removed, strings.Join(at, "."))
		case was.Equal(is):
		case was.Type == bson.TypeEmbeddedDocument && is.Type == bson.TypeEmbeddedDocument:
			d.compare(at, was.Value, is.Value)
		case was.Type == bson.TypeArray && is.Type == bson.TypeArray:
			d.compareArrays(at, was, is)
		default:
			d.set(at, is)
		}
	}
	for k, is := range after.All() {
		if before.Lookup(k).Type == 0 {
			d.set(append(slices.Clone(path), strings.Clone(k)), is)
		}
	}
}

func (d *delta) compareArrays(path []string, was, is bson.RawValue) {
	old := bsondoc.Items(was)
	n := 0
	for v := range bson.Raw(is.Value).Values() {
		at := append(slices.Clone(path), strconv.Itoa(n))
		switch {
		case n >= len(old):
			d.set(at, v)
		case old[n].Equal(v):
		case old[n].Type == bson.TypeEmbeddedDocument && v.Type == bson.TypeEmbeddedDocument:
			d.compare(at, old[n].Value, v.Value)
		default:
			d.set(at, v)
		}
		n++
	}
	if n < len(old) {
		d.truncated = append(d.truncated, truncation{strings.Join(path, "."), n})
	}
}

// appendDisambiguated appends disambiguatedPaths: the paths whose parts are not what they look
// like, a number that is a field's name or a name with a dot in it.
func (d *delta) appendDisambiguated(doc []byte, e *store.Entry) []byte {
	at, doc := bson.BeginDocumentElement(doc, "disambiguatedPaths")
	for _, c := range d.updated {
		odd := false
		for i, part := range c.path {
			_, err := strconv.Atoi(part)
			parent := lookupPath(e.After(), c.path[:i])
			odd = odd || strings.Contains(part, ".") || err == nil && i > 0 && parent.Type != 0
		}
		if !odd {
			continue
		}
		list, dd := bson.BeginArrayElement(doc, strings.Join(c.path, "."))
		for i, part := range c.path {
			if n, err := strconv.Atoi(part); err == nil && i > 0 &&
				lookupPath(e.After(), c.path[:i]).Type == bson.TypeArray {
				dd = bson.AppendInt32Value(bson.AppendIndexHeader(dd, bson.TypeInt32, i), int32(n))
				continue
			}
			dd = bson.AppendStringValue(bson.AppendIndexHeader(dd, bson.TypeString, i), part)
		}
		doc = bson.EndDocument(dd, list)
	}
	return bson.EndDocument(doc, at)
}
