package schema

import (
	"fmt"
	"go/format"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"allium/bson"
	"allium/internal/option"
)

// WriteGoOptions are the options of WriteGo.
type WriteGoOptions struct {
	// Package is the name of the package. Empty: "schema".
	Package string
	// Variable is the name of the variable. Empty: "Schema".
	Variable string
}

// WriteGo writes a schema as a Go source file that declares it, such as one that Read has read. The
// declarations have the documents of a server's catalog: what they are about is for people to
// replace, a $jsonSchema by a Validator, keys by those of package field.
func WriteGo(w io.Writer, s Schema, opts ...WriteGoOptions) error {
	o := option.Merge(opts)
	if o.Package == "" {
		o.Package = "schema"
	}
	if o.Variable == "" {
		o.Variable = "Schema"
	}
	g := goWriter{imports: map[string]string{}}
	value := g.value(reflect.ValueOf(s))
	if g.err != nil {
		return g.err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport (\n", o.Package)
	own := strings.TrimSuffix(reflect.TypeFor[Schema]().PkgPath(), "patterns/schema")
	for _, inside := range []bool{false, true} { // the standard library's first
		for _, path := range slices.Sorted(maps.Keys(g.imports)) {
			if strings.HasPrefix(path+"/", own) == inside {
				fmt.Fprintf(&b, "\t%q\n", path)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, ")\n\n// %s is what the database has beside its documents.\nvar %s = %s\n", o.Variable, o.Variable,
		value)
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		return fmt.Errorf("schema: write Go: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// goWriter writes values as Go expressions.
type goWriter struct {
	imports map[string]string // path -> name
	err     error
}

// name returns a type as the file names it.
func (g *goWriter) name(t reflect.Type) string {
	switch {
	case t.Name() == "" && t.Kind() == reflect.Slice:
		return "[]" + g.name(t.Elem())
	case t.PkgPath() == "":
		return t.String()
	}
	pkg, _, _ := strings.Cut(t.String(), ".")
	g.imports[t.PkgPath()] = pkg
	return t.String()
}

// value returns a Go expression for a value of a declaration. Fields that are zero are left out,
// and numbers have their type.
func (g *goWriter) value(v reflect.Value) string {
	if v.Kind() == reflect.Interface {
		return g.element(v.Interface())
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		g.imports["time"] = "time"
		for _, unit := range []struct {
			d    time.Duration
			name string
		}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}} {
			if x != 0 && x%unit.d == 0 {
				return fmt.Sprintf("%d * time.%s", x/unit.d, unit.name)
			}
		}
		return fmt.Sprintf("time.Duration(%d)", int64(x))
	case bson.D:
		return g.list(v, "\n", func(e reflect.Value) string {
			el := e.Interface().(bson.E)
			return "{Key: " + strconv.Quote(el.Key) + ", Value: " + g.element(el.Value) + "}"
		})
	case bson.A:
		return g.list(v, ", ", func(e reflect.Value) string { return g.element(e.Interface()) })
	case bson.Decimal128:
		hi, lo := x.Bits()
		return fmt.Sprintf("%s.NewDecimal128(%#x, %#x)", g.bson(), hi, lo)
	}
	switch v.Kind() {
	case reflect.Pointer:
		// new of an expression is a pointer to its value.
		return "new(" + g.typed(v.Elem()) + ")"
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf("[]byte(%q)", v.Bytes())
		}
		return g.list(v, "\n", func(e reflect.Value) string { return strings.TrimPrefix(g.value(e), g.name(e.Type())) })
	case reflect.Array:
		return fmt.Sprintf("%s(%q)", g.name(v.Type()), string(v.Slice(0, v.Len()).Bytes()))
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && !v.Field(i).IsZero() {
				parts = append(parts, f.Name+": "+g.value(v.Field(i)))
			}
		}
		text := strings.Join(parts, ", ")
		if len(parts) > 1 && len(text) > 60 {
			text = "\n" + strings.Join(parts, ",\n") + ",\n"
		}
		return g.name(v.Type()) + "{" + text + "}"
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			g.imports["math"] = "math"
			switch {
			case math.IsNaN(f):
				return "math.NaN()"
			case f > 0:
				return "math.Inf(1)"
			}
			return "math.Inf(-1)"
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	g.err = fmt.Errorf("schema: write Go: a value of type %v", v.Type())
	return "nil"
}

func (g *goWriter) bson() string {
	g.name(reflect.TypeFor[bson.D]())
	return "bson"
}

// typed returns an expression whose type is that of the value.
func (g *goWriter) typed(v reflect.Value) string {
	text := g.value(v)
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Array, reflect.Bool:
		return text
	}
	if v.Type() == reflect.TypeFor[time.Duration]() && strings.Contains(text, "*") ||
		v.Type() == reflect.TypeFor[string]() {
		return text
	}
	if v.Type() == reflect.TypeFor[float64]() && strings.ContainsAny(text, ".eNI") {
		return text
	}
	return g.name(v.Type()) + "(" + text + ")"
}

// element returns an expression for a value of a document, as it decodes into a variable of type
// any. Whole numbers of 32 bits are an int, which is encoded as such.
func (g *goWriter) element(v any) string {
	raw, err := bson.MarshalValue(v)
	if err == nil {
		err = raw.Unmarshal(&v)
	}
	if err != nil {
		g.err = fmt.Errorf("schema: write Go: %w", err)
		return "nil"
	}
	switch x := v.(type) {
	case nil:
		return "nil"
	case int32:
		return strconv.Itoa(int(x))
	}
	return g.typed(reflect.ValueOf(v))
}

func (g *goWriter) list(v reflect.Value, sep string, each func(reflect.Value) string) string {
	var parts []string
	for i := range v.Len() {
		parts = append(parts, each(v.Index(i)))
	}
	text := strings.Join(parts, ", ")
	if sep == "\n" && (len(text) > 80 || strings.Contains(text, "\n")) {
		text = "\n" + strings.Join(parts, ",\n") + ",\n"
	}
	return g.name(v.Type()) + "{" + text + "}"
}
