package surface

import (
	"fmt"
	"go/types"
	"strings"
)

// text writes a type so that two are the same to a program if their texts are: a type that the
// compared packages offer under a name has that name, and names of parameters are left out.
func (c *comparer) text(t types.Type) string {
	var b strings.Builder
	c.write(&b, t)
	return b.String()
}

func (c *comparer) write(b *strings.Builder, t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		obj := t.Obj()
		switch name, ok := c.alias[obj]; {
		case ok:
			b.WriteString(name)
		case obj.Pkg() != nil:
			b.WriteString(obj.Pkg().Path() + "." + obj.Name())
		default:
			b.WriteString(obj.Name())
		}
		for i := range t.TypeArgs().Len() {
			b.WriteString("[")
			c.write(b, t.TypeArgs().At(i))
			b.WriteString("]")
		}
	case *types.TypeParam:
		fmt.Fprintf(b, "$%d", t.Index())
	case *types.Pointer:
		b.WriteString("*")
		c.write(b, t.Elem())
	case *types.Slice:
		b.WriteString("[]")
		c.write(b, t.Elem())
	case *types.Array:
		fmt.Fprintf(b, "[%d]", t.Len())
		c.write(b, t.Elem())
	case *types.Map:
		b.WriteString("map[")
		c.write(b, t.Key())
		b.WriteString("]")
		c.write(b, t.Elem())
	case *types.Chan:
		b.WriteString([]string{"chan ", "chan<- ", "<-chan "}[t.Dir()])
		c.write(b, t.Elem())
	case *types.Tuple:
		b.WriteString("(")
		for i := range t.Len() {
			if i > 0 {
				b.WriteString(", ")
			}
			c.write(b, t.At(i).Type())
		}
		b.WriteString(")")
	case *types.Signature:
		b.WriteString("func")
		for i := range t.TypeParams().Len() {
			b.WriteString("[")
			c.write(b, t.TypeParams().At(i).Constraint())
			b.WriteString("]")
		}
		c.write(b, t.Params())
		if t.Variadic() {
			b.WriteString("...")
		}
		c.write(b, t.Results())
	case *types.Struct:
		b.WriteString("struct{")
		for i := range t.NumFields() {
			f := t.Field(i)
			b.WriteString(f.Name() + " ")
			c.write(b, f.Type())
			fmt.Fprintf(b, " %q;", t.Tag(i))
		}
		b.WriteString("}")
	case *types.Interface:
		b.WriteString("interface{")
		for m := range t.Methods() {
			b.WriteString(m.Name() + " ")
			c.write(b, m.Type())
			b.WriteString(";")
		}
		for e := range t.EmbeddedTypes() {
			if !types.IsInterface(e) || !t.IsMethodSet() {
				c.write(b, e)
				b.WriteString(";")
			}
		}
		b.WriteString("}")
	case *types.Union:
		for term := range t.Terms() {
			if term.Tilde() {
				b.WriteString("~")
			}
			c.write(b, term.Type())
			b.WriteString("|")
		}
	case *types.Basic:
		b.WriteString(types.Typ[t.Kind()].Name()) // byte is uint8
	default:
		b.WriteString(t.String())
	}
}
