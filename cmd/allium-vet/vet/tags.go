package vet

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Tags finds bson tags that collide, or that do nothing.
var Tags = &analysis.Analyzer{
	Name:     "bsontags",
	Doc:      "find bson tags that collide or cannot work\n\n`bson:\"name,omitemtpy\"`, two fields of one name, inline of what is no struct, a tag of an unexported field.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runTags,
}

// tagOptions are the options of both drivers.
var tagOptions = []string{"omitempty", "omitzero", "minsize", "truncate", "inline", "lenient"}

// structKey is a key of the documents that a struct becomes.
type structKey struct {
	name  string
	omits bool // if it is empty
	typ   types.Type
}

// structKeys returns the keys of a struct. certain tells that these are all: no map is inline.
func structKeys(s *types.Struct) (keys []structKey, certain bool) {
	certain = true
	for i := range s.NumFields() {
		f := s.Field(i)
		tag := reflect.StructTag(s.Tag(i)).Get("bson")
		name, _, _ := strings.Cut(tag, ",")
		opts := strings.Split(tag, ",") // a name that is an option is one, too
		switch {
		case tag == "-":
			continue
		case slices.Contains(opts, "inline"):
			inner, _ := structOf(f.Type())
			if inner == nil || inner == s {
				certain = false
				continue
			}
			more, all := structKeys(inner)
			keys, certain = append(keys, more...), certain && all
			continue
		case !f.Exported():
			continue
		case name == "":
			name = strings.ToLower(f.Name())
		}
		keys = append(keys, structKey{name, slices.Contains(opts, "omitempty") || slices.Contains(opts[1:], "omitzero"),
			f.Type()})
	}
	return keys, certain
}

// marshals reports whether values of the type, or pointers to it, say themselves what they become.
func marshals(t types.Type) bool {
	n := named(t)
	if n == nil {
		return false
	}
	set := types.NewMethodSet(types.NewPointer(n))
	for i := range set.Len() {
		if name := set.At(i).Obj().Name(); strings.HasPrefix(name, "MarshalBSON") || name == "GetBSON" {
			return true
		}
	}
	return false
}

func runTags(pass *analysis.Pass) (any, error) {
	files := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	own := map[*ast.StructType]bool{} // those of types that marshal themselves
	files.Preorder([]ast.Node{(*ast.TypeSpec)(nil), (*ast.StructType)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok && marshals(pass.TypesInfo.TypeOf(n.Name)) {
				own[s] = true
			}
		case *ast.StructType:
			if !own[n] {
				checkTags(pass, n)
			}
		}
	})
	return nil, nil
}

func checkTags(pass *analysis.Pass, s *ast.StructType) {
	tagged := false
	first := map[string]string{} // key: field
	stored := false
	type dotted struct {
		node ast.Node
		name string
	}
	var dots []dotted
	for _, f := range s.Fields.List {
		raw := ""
		if f.Tag != nil {
			raw, _ = strconv.Unquote(f.Tag.Value)
		}
		tag, ok := reflect.StructTag(raw).Lookup("bson")
		tagged = tagged || ok
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		t := pass.TypesInfo.TypeOf(f.Type)
		inline := name == "inline"
		if options != "" {
			for option := range strings.SplitSeq(options, ",") {
				inline = inline || option == "inline"
				if meant := misspelt(option); meant != "" {
					report(pass, f.Tag, fix("Write "+meant,
						replace(f.Tag, strings.Replace(f.Tag.Value, ","+option, ","+meant, 1))),
						"unknown option %q in the tag: %s is meant", option, meant)
				}
			}
		}
		switch {
		case slices.Contains(tagOptions[:5], name) && !inline && ok && !strings.EqualFold(fieldName(f), name):
			report(pass, f.Tag, nil, "the field is stored as %q: an option stands behind a comma, `bson:\",%s\"`", name,
				name)
		case strings.TrimSpace(name) != name:
			report(pass, f.Tag, nil, "the field is stored as %q, with the blank", name)
		case inline && !mayBeInline(t):
			report(pass, f.Tag, nil, "inline is for structs, pointers to structs and maps, not for %s", typeName(t))
		}
		if inline {
			continue
		}
		names := f.Names
		if len(names) == 0 {
			names = []*ast.Ident{{NamePos: f.Type.Pos(), Name: fieldName(f)}}
		}
		for _, id := range names {
			if !ast.IsExported(id.Name) {
				if ok && tag != "" && id.Name != "_" && len(f.Names) > 0 {
					report(pass, f.Tag, nil, "the tag of %s does nothing: fields that are not exported are left out",
						id.Name)
				}
				continue
			}
			key := name
			if key == "" {
				key = strings.ToLower(id.Name)
			}
			stored = stored || key == "_id"
			if strings.Contains(key, ".") || strings.HasPrefix(key, "$") {
				dots = append(dots, dotted{f, key})
			}
			if other := first[key]; other != "" && (ok || tagged) {
				report(pass, f, nil, "%s and %s have the same key %q", other, id.Name, key)
			}
			first[key] = id.Name
		}
	}
	if !stored {
		return // may be an update or a stage
	}
	for _, d := range dots {
		report(pass, d.node, nil, "%q cannot be the key of a field in a stored document: filters and updates take it for a path or an operator", d.name)
	}
}

func fieldName(f *ast.Field) string {
	if len(f.Names) > 0 {
		return f.Names[0].Name
	}
	e := f.Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			return x.Sel.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// misspelt returns the option that an unknown one is meant as, "" if there is none.
func misspelt(option string) string {
	if option == "" || slices.Contains(tagOptions, option) {
		return ""
	}
	for _, known := range tagOptions {
		if strings.EqualFold(strings.TrimSpace(option), known) || distance(strings.ToLower(option), known) <= 2 {
			return known
		}
	}
	return ""
}

func mayBeInline(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return true
	}
	switch u := under(t).(type) {
	case *types.Struct, *types.Interface:
		return true
	case *types.Map:
		return isString(u.Key())
	}
	return false
}
