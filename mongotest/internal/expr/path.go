package expr

// Field paths and variables: "$a.b", "$$ROOT.a", "$$NOW".

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// CheckPath reports what is wrong with a dotted field path, as the server's FieldPath does.
func CheckPath(path string, v Version) error {
	switch {
	case path == "":
		return srverr.New(40352, "FieldPath cannot be constructed with empty string")
	case strings.HasSuffix(path, "."):
		return srverr.New(40353, "FieldPath must not end with a '.'.")
	}
	n := 0
	for part := range strings.SplitSeq(path, ".") {
		if err := checkFieldName(part, v); err != nil {
			return err
		}
		if n++; n > maxDepth {
			return srverr.New(srverr.Overflow, "FieldPath is too long")
		}
	}
	return nil
}

// CheckFieldName reports what is wrong with a single field name.
func CheckFieldName(name string, v Version) error { return checkFieldName(name, v) }

// dbRefFields are the fields of a DBRef, which paths may name since [release.Version.AllParsed].
var dbRefFields = map[string]bool{"$ref": true, "$id": true, "$db": true}

func checkFieldName(name string, v Version) error {
	switch {
	case name == "":
		return srverr.New(15998, "FieldPath field names may not be empty strings.")
	case name[0] == '$' && !(v.AllParsed() && dbRefFields[name]):
		if v.AtLeast(5, 0) {
			return srverr.New(16410,
				"FieldPath field names may not start with '$'. Consider using $getField or $setField.")
		}
		return srverr.New(16410, "FieldPath field names may not start with '$'.")
	case strings.IndexByte(name, 0) >= 0:
		// The server's text breaks off at the NUL that it wants to show.
		return srverr.New(16411, "FieldPath field names may not contain '")
	case strings.IndexByte(name, '.') >= 0:
		if v.AtLeast(5, 0) {
			return srverr.New(16412,
				"FieldPath field names may not contain '.'. Consider using $getField or $setField.")
		}
		return srverr.New(16412, "FieldPath field names may not contain '.'.")
	}
	return nil
}

// fieldPath reads a variable (or the root document) and walks down from it.
type fieldPath struct {
	fromRoot bool
	slot     Slot
	parts    []string
}

func (f *fieldPath) eval(st *State) (bson.RawValue, error) {
	v := st.root
	if !f.fromRoot {
		v = st.get(f.slot)
	}
	if len(f.parts) == 0 {
		return v, nil
	}
	return walk(v, f.parts), nil
}

func (f *fieldPath) optimize(*Env) (Expr, error) { return f, nil }

// walk follows a path. An array on the way answers with the array of what its documents hold there.
func walk(v bson.RawValue, parts []string) bson.RawValue {
	for len(parts) > 0 {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v = bson.Raw(v.Value).Lookup(parts[0])
			parts = parts[1:]
		case bson.TypeArray:
			b := newArray()
			for item := range bson.Raw(v.Value).Values() {
				if item.Type != bson.TypeEmbeddedDocument {
					continue
				}
				if found := walk(item, parts); found.Type != 0 {
					b.add(found)
				}
			}
			return b.value()
		default:
			return bson.RawValue{}
		}
	}
	return v
}

func parseFieldPath(text string, s *Scope) (Expr, error) {
	if text == "$" {
		return nil, srverr.New(16872, "'$' by itself is not a valid FieldPath")
	}
	if !strings.HasPrefix(text, "$$") {
		path := text[1:]
		if err := CheckPath(path, s.env.Version); err != nil {
			if strings.HasPrefix(path, ".") { // the server prepends CURRENT
				return nil, srverr.New(15998, "FieldPath field names may not be empty strings.")
			}
			return nil, err
		}
		f := &fieldPath{fromRoot: true, parts: strings.Split(path, ".")}
		if s.env.Let {
			if err := checkInLet("CURRENT", s.env.Version); err != nil {
				return nil, err
			}
		}
		if slot, ok := s.lookup("CURRENT"); ok {
			f.fromRoot, f.slot = false, slot
		}
		return f, nil
	}
	name, path, dotted := strings.Cut(text[2:], ".")
	if err := checkVariable(name, s.env.Version, false); err != nil {
		return nil, err
	}
	var parts []string
	if dotted {
		switch {
		case path == "" || strings.HasSuffix(path, "."):
			return nil, srverr.New(40353, "FieldPath must not end with a '.'.")
		}
		if err := CheckPath(path, s.env.Version); err != nil {
			return nil, err
		}
		parts = strings.Split(path, ".")
	}
	if slot, ok := s.lookup(name); ok {
		return &fieldPath{slot: slot, parts: parts}, nil
	}
	if s.env.Let {
		if err := checkInLet(name, s.env.Version); err != nil {
			return nil, err
		}
	}
	if s.env.NoTimes && (name == "NOW" || name == "CLUSTER_TIME") {
		return nil, unavailable(name)
	}
	if s.env.NoClusterTime && name == "CLUSTER_TIME" {
		return nil, srverr.New(10071200, "Builtin variable '$$CLUSTER_TIME' is not available")
	}
	switch name {
	case "ROOT", "CURRENT":
		return &fieldPath{fromRoot: true, parts: parts}, nil
	case "REMOVE":
		return &systemVariable{name: name, parts: parts}, nil
	case "NOW", "CLUSTER_TIME":
		return &systemVariable{name: name, parts: parts}, nil
	case "USER_ROLES", "SEARCH_META":
		if s.env.Version.Has(release.Variable, "$$"+name) {
			return &systemVariable{name: name, parts: parts}, nil
		}
	}
	return nil, srverr.New(17276, "Use of undefined variable: %s", name)
}

// checkInLet refuses what a command's let cannot name: it is computed before there is a document,
// and since version 8.1 before there is a time.
func checkInLet(name string, v Version) error {
	switch name {
	case "ROOT", "CURRENT":
		if v.AtLeast(5, 0) {
			return srverr.New(4890500, "Command let Expression tried to access a field, but this is not "+
				"allowed because Command let Expressions run before the query examines any documents.")
		}
	case "NOW", "CLUSTER_TIME":
		if v.AllParsed() {
			return unavailable(name)
		}
	}
	return nil
}

func unavailable(name string) error {
	return srverr.New(51144, "Builtin variable '$$%s' is not available", name)
}

// CheckLetName checks the name of a variable in a command's let.
func CheckLetName(name string, v Version) error {
	if v.AllParsed() && (name == "NOW" || name == "CLUSTER_TIME") {
		return srverr.New(4738901, "Attempt to set internal constant: %s", name)
	}
	return CheckVariableName(name, v)
}

// systemVariable is a variable whose value comes from the environment.
type systemVariable struct {
	name  string
	parts []string
}

func (v *systemVariable) eval(st *State) (bson.RawValue, error) {
	var out bson.RawValue
	switch v.name {
	case "NOW":
		out = bsondoc.DateValue(int64(st.env.Now))
	case "CLUSTER_TIME":
		if st.env.ClusterTime.IsZero() && !st.env.Version.AllParsed() {
			return out, unavailable(v.name)
		}
		out = bsondoc.TimestampValue(st.env.ClusterTime)
	case "USER_ROLES":
		out = st.env.UserRoles
	case "SEARCH_META":
		out = st.env.SearchMeta
	}
	return walk(out, v.parts), nil
}

func (v *systemVariable) optimize(env *Env) (Expr, error) {
	if v.name == "REMOVE" {
		return &constant{}, nil
	}
	return v, nil
}

// checkVariable checks the name of a variable, one that is being defined or one that is read.
func checkVariable(name string, v Version, define bool) error {
	code := func(c int32) int32 {
		if v.AtLeast(5, 0) {
			return srverr.FailedToParse
		}
		return c
	}
	lower := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0x80 }
	upper := func(c byte) bool { return c >= 'A' && c <= 'Z' }
	rest := func(c byte) bool { return lower(c) || upper(c) || c >= '0' && c <= '9' || c == '_' }
	if define {
		if name == "" {
			return srverr.New(code(16866), "empty variable names are not allowed")
		}
		if name == "CURRENT" {
			return nil
		}
		if !lower(name[0]) {
			return srverr.New(code(16867), "'%s' starts with an invalid character for a user variable name", name)
		}
		for i := 1; i < len(name); i++ {
			if !rest(name[i]) {
				return srverr.New(code(16868), "'%s' contains an invalid character for a variable name: '%c'", name,
					name[i])
			}
		}
		return nil
	}
	if name == "" {
		return srverr.New(code(16869), "empty variable names are not allowed")
	}
	if !lower(name[0]) && !upper(name[0]) {
		if v.AtLeast(5, 0) {
			return srverr.New(srverr.FailedToParse, "'%s' starts with an invalid character for a user variable name",
				name)
		}
		return srverr.New(code(16870), "'%s' starts with an invalid character for a variable name", name)
	}
	for i := 1; i < len(name); i++ {
		if !rest(name[i]) {
			return srverr.New(code(16871), "'%s' contains an invalid character for a variable name: '%c'", name,
				name[i])
		}
	}
	return nil
}

// CheckVariableName reports what is wrong with the name of a variable that a command or stage
// defines.
func CheckVariableName(name string, v Version) error { return checkVariable(name, v, true) }

// RootField returns the name of the top level field that an expression consists of.
func RootField(e Expr) (name string, ok bool) {
	f, ok := e.(*fieldPath)
	if !ok || !f.fromRoot || len(f.parts) != 1 {
		return "", false
	}
	return f.parts[0], true
}

// MappedFields returns the fields that the elements of an array have after a $map which makes a
// document of each, with the paths that their values had; ok is false for other expressions. A $map
// within counts, too. What is more than a field of the element is left out.
func MappedFields(e Expr) (fields map[string]string, ok bool) {
	m, ok := e.(*mapExpr)
	if !ok {
		return nil, false
	}
	from, ok := m.input.(*fieldPath)
	if !ok || !from.fromRoot || len(from.parts) == 0 {
		return nil, false
	}
	fields = map[string]string{}
	m.mapped(fields, "", strings.Join(from.parts, "."))
	return fields, true
}

// mapped notes the fields of the documents that a $map makes of the array at a path.
func (m *mapExpr) mapped(fields map[string]string, prefix, array string) {
	made, ok := m.in.(*objectExpr)
	if !ok {
		return
	}
	ofElement := func(e Expr) (path string, ok bool) {
		f, ok := e.(*fieldPath)
		if !ok || f.fromRoot || f.slot != m.this || len(f.parts) == 0 {
			return "", false
		}
		return array + "." + strings.Join(f.parts, "."), true
	}
	for i, item := range made.items {
		name := prefix + made.keys[i]
		if path, ok := ofElement(item); ok {
			fields[name] = path
			continue
		}
		if inner, ok := item.(*mapExpr); ok {
			if path, ok := ofElement(inner.input); ok {
				inner.mapped(fields, name+".", path)
			}
		}
	}
}

// Dependencies returns the top-level paths of the root document that e reads, or that it needs the
// whole of it.
func Dependencies(e Expr) (paths []string, whole bool) {
	d := &dependencies{}
	d.visit(e)
	return d.paths, d.whole
}

type dependencies struct {
	paths []string
	whole bool
}

func (d *dependencies) visit(list ...Expr) {
	for _, e := range list {
		switch e := e.(type) {
		case *fieldPath:
			switch {
			case !e.fromRoot:
			case len(e.parts) == 0:
				d.whole = true
			default:
				d.paths = append(d.paths, strings.Join(e.parts, "."))
			}
		case parent:
			d.visit(e.children()...)
		}
	}
}

// parent is an expression with operands.
type parent interface{ children() []Expr }

func (o *objectExpr) children() []Expr { return o.items }
func (a *arrayExpr) children() []Expr  { return a.items }
func (n *nary) children() []Expr       { return n.args }
func (n *named) children() []Expr      { return n.args }
func (j *junction) children() []Expr   { return j.args }
func (c *cond) children() []Expr       { return []Expr{c.test, c.then, c.otherwise} }
func (n *ifNull) children() []Expr     { return n.args }
func (l *let) children() []Expr        { return append([]Expr{l.in}, l.values...) }
func (m *mapExpr) children() []Expr    { return []Expr{m.input, m.in} }
func (f *filterExpr) children() []Expr { return []Expr{f.input, f.cond, f.limit} }
func (r *reduceExpr) children() []Expr { return []Expr{r.input, r.initial, r.in} }
func (g *getField) children() []Expr   { return []Expr{g.field, g.input} }
func (f *setField) children() []Expr   { return []Expr{f.input, f.value} }
func (z *zipExpr) children() []Expr    { return append(append([]Expr(nil), z.inputs...), z.defaults...) }
func (sw *switchExpr) children() []Expr {
	return append(append([]Expr{sw.otherwise}, sw.cases...), sw.thens...)
}
