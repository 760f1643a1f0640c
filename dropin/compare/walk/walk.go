// Package walk applies the same steps to things of the official driver and of the drop-in: cursors,
// streams, sessions, files. The steps are lines of walks.txt. What each step returns is printed.
//
// A line of the table is
//
//	KIND ARGUMENTS: STEP, STEP, ...
//
// with "v1 " or "v2 " before it if it is for one version only. The kind opens a thing by the
// arguments. A step is a method or a field of the thing, or a step that the kind adds; a method's
// arguments follow it as words: whole numbers, "ended" for a context that has ended, and names of
// values that the program has. A context that is not named is one without an end.
//
// Behind the table's walks come random ones, of the steps that the table has for a kind.
package walk

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed walks.txt
var table string

// A Kind is a kind of things.
type Kind struct {
	Open  func(args ...string) (any, error)
	Steps map[string]func(thing any, args ...string) []any
	Close func(thing any)
	// Random is how many random walks there are for each line of the table.
	Random int
}

// A World is what a program knows of its driver.
type World struct {
	Version string // v1 or v2
	Kinds   map[string]Kind
	// Values has what arguments may name besides those of Plain. Values that are pointers are
	// printed behind the results.
	Values map[string]func() any
	// Error describes an error.
	Error func(error) string
	// Text describes a value, "" leaves it to this package.
	Text func(any) string

	out *bufio.Writer
}

// Number returns a word as a whole number.
func Number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}

// say prints a line.
func (w *World) say(what, came string) {
	fmt.Fprintf(w.out, "%s\t%s\n", what, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(came))
}

// A walk is a line of the table.
type walk struct {
	kind  string
	args  []string
	steps []string
}

func (w *walk) String() string { return strings.Join(append([]string{w.kind}, w.args...), " ") }

// walks returns the lines for a version.
func walks(version string) []*walk {
	var out []*walk
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, v := range []string{"v1", "v2"} {
			rest, only := strings.CutPrefix(line, v+" ")
			if only {
				line = rest
				if v != version {
					line = ""
				}
				break
			}
		}
		if line == "" {
			continue
		}
		head, steps, ok := strings.Cut(line, ": ")
		if !ok {
			panic("a walk without steps: " + line)
		}
		words := strings.Fields(head)
		out = append(out, &walk{kind: words[0], args: words[1:], steps: strings.Split(steps, ", ")})
	}
	return out
}

// Run walks all lines of the table, and random walks whose seed a word says.
func (w *World) Run(seed string) {
	w.out = bufio.NewWriter(os.Stdout)
	defer w.out.Flush()
	all := walks(w.Version)
	vocabulary := map[string][]string{}
	for _, walk := range all {
		for _, step := range walk.steps {
			if !slices.Contains(vocabulary[walk.kind], step) {
				vocabulary[walk.kind] = append(vocabulary[walk.kind], step)
			}
		}
	}
	for i, walk := range all {
		w.walk(fmt.Sprintf("%03d", i), walk)
	}
	for i, of := range all {
		steps := vocabulary[of.kind]
		for n := range w.Kinds[of.kind].Random {
			r := rand.New(rand.NewPCG(uint64(Number(seed)), uint64(i*1000+n)))
			random := &walk{kind: of.kind, args: of.args}
			for range 8 {
				random.steps = append(random.steps, steps[r.IntN(len(steps))])
			}
			w.walk(fmt.Sprintf("%03d random %d", i, n), random)
		}
	}
}

// walk walks, and prints a line for each step.
func (w *World) walk(name string, of *walk) {
	kind, ok := w.Kinds[of.kind]
	if !ok {
		panic("no such kind: " + of.String())
	}
	thing, err := kind.Open(of.args...)
	what := name + " " + of.String()
	w.say(what+" 00 opened", w.texts(thing != nil, err))
	if err != nil || thing == nil {
		return
	}
	for i, step := range of.steps {
		w.say(fmt.Sprintf("%s %02d %s", what, i+1, step), w.step(kind, thing, step))
	}
	if kind.Close != nil {
		kind.Close(thing)
	}
}

// step takes one step, and returns what came of it.
func (w *World) step(kind Kind, thing any, step string) (came string) {
	defer func() {
		if p := recover(); p != nil {
			came = mask(fmt.Sprintf("panic %T %v", p, p))
		}
	}()
	words := strings.Fields(step)
	name, args := words[0], words[1:]
	if own, ok := kind.Steps[name]; ok {
		return w.texts(own(thing, args...)...)
	}
	v := reflect.ValueOf(thing)
	if m := v.MethodByName(name); m.IsValid() {
		return w.texts(w.call(m, args)...)
	}
	if e := reflect.Indirect(v); e.Kind() == reflect.Struct {
		if f := e.FieldByName(name); f.IsValid() {
			return w.texts(f.Interface())
		}
	}
	panic(fmt.Sprintf("%T has no step %s", thing, name))
}

var contextType = reflect.TypeFor[context.Context]()

// call calls a method with the arguments that words name.
func (w *World) call(m reflect.Value, words []string) []any {
	t := m.Type()
	var in []reflect.Value
	var shown []any
	for i := range t.NumIn() {
		p := t.In(i)
		variadic := t.IsVariadic() && i == t.NumIn()-1
		if variadic {
			p = p.Elem()
		}
		if p == contextType {
			ctx := context.Background()
			if len(words) > 0 && words[0] == "ended" {
				c, cancel := context.WithCancel(ctx)
				cancel()
				ctx, words = c, words[1:]
			} else if len(words) > 0 && words[0] == "noctx" {
				in, words = append(in, reflect.Zero(p)), words[1:]
				continue
			}
			in = append(in, reflect.ValueOf(ctx))
			continue
		}
		for len(words) > 0 {
			val := w.value(words[0])
			words = words[1:]
			switch rv := reflect.ValueOf(val); {
			case !rv.IsValid():
				in = append(in, reflect.Zero(p))
			case rv.Type().AssignableTo(p):
				in = append(in, rv)
				if rv.Kind() == reflect.Pointer && p.Kind() == reflect.Interface && p.NumMethod() == 0 {
					shown = append(shown, rv.Elem())
				}
			default:
				in = append(in, rv.Convert(p))
			}
			if !variadic {
				break
			}
		}
		if !variadic && len(in) <= i {
			panic(fmt.Sprintf("no argument %d for %s", i, t))
		}
	}
	if len(words) > 0 {
		panic("too many arguments: " + strings.Join(words, " "))
	}
	var out []any
	for _, r := range m.Call(in) {
		out = append(out, r.Interface())
	}
	for _, s := range shown {
		out = append(out, s.(reflect.Value).Interface())
	}
	return out
}

// value returns what a word of a step means.
func (w *World) value(word string) any {
	for _, values := range []map[string]func() any{w.Values, Plain} {
		if make, ok := values[word]; ok {
			return make()
		}
	}
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	if word == "nil" {
		return nil
	}
	if text, ok := strings.CutPrefix(word, "'"); ok {
		return strings.TrimSuffix(text, "'")
	}
	panic("no such value: " + word)
}

// texts describes values.
func (w *World) texts(values ...any) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = mask(w.text(v))
	}
	return strings.Join(parts, " | ")
}

func (w *World) text(v any) string {
	if v == nil {
		return "nil"
	}
	if err, ok := v.(error); ok {
		return w.Error(err)
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer && rv.IsNil() {
		return fmt.Sprintf("nil %T", v)
	}
	if text := w.Text(v); text != "" {
		return text
	}
	if rv.Kind() == reflect.Pointer && rv.Elem().Kind() == reflect.Struct {
		return "&" + w.text(rv.Elem().Interface())
	}
	return fmt.Sprintf("%+v", v)
}

// masks are for what is another at each run.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`primitive\.`), "bson."},
	{regexp.MustCompile(`127\.0\.0\.1:\d+(\[-?\d+\])?`), "ADDRESS"},
	{regexp.MustCompile(`(Transaction|transaction number( is)?) \d+`), "transaction NUMBER"},
	{regexp.MustCompile(`(localhost|a):\d+`), "ADDRESS"},
	{regexp.MustCompile(`"base64": ?"[^"]{20,}"`), "BINARY"},
	{regexp.MustCompile(`[0-9A-F]{24,}`), "TOKEN"},
	{regexp.MustCompile(`[0-9a-f]{24}`), "OBJECTID"},
	{regexp.MustCompile(`\{"t": ?\{?[^}]*\}?,"i": ?[^}]*\}`), "TIME"},
	{regexp.MustCompile(`\{T:\d+ I:\d+\}`), "TIME"},
	{regexp.MustCompile(`\d{10,}`), "NUMBER"},
	{regexp.MustCompile(`0x[0-9a-f]+`), "POINTER"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^ }|]*( \+0000 UTC)?`), "DATE"},
}

func mask(text string) string {
	for _, m := range masks {
		text = m.what.ReplaceAllLiteralString(text, m.with)
	}
	return text
}
