package say

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"allium/bson"
)

// Varying are the fields of documents whose values differ from run to run: of them is said only
// that they are there.
var Varying = []string{"$clusterTime", "operationTime", "lsid", "id", "electionId", "opTime", "topologyVersion",
	"connectionId", "localTime", "clusterTime", "atClusterTime", "afterClusterTime", "lastWrite", "processId",
	"signature", "hash", "postBatchResumeToken", "resumeToken", "collectionUUID", "wallTime", "_data",
	"uuid", "configVersion", "keyId", "payload", "client", "speculativeAuthenticate", "maxTimeMS", "setVersion"}

// hidden are parts of texts that differ from run to run.
var hidden = []struct {
	pattern *regexp.Regexp
	shown   string
}{
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):\d{2,5}`), "HOST"},
	{regexp.MustCompile(`\[-\d+\]`), "[-N]"},
	{regexp.MustCompile(`[0-9a-f]{24}`), "OID"},
	{regexp.MustCompile(`\b\d{15,19}\b`), "CURSOR"},
	{regexp.MustCompile(`HOST->HOST|HOST`), "HOST"},
	{regexp.MustCompile(`Average RTT: [^,} ]+`), "Average RTT: N"},
}

// Scrubbed is a text without what differs from run to run.
func Scrubbed(text string) string {
	for _, h := range hidden {
		text = h.pattern.ReplaceAllString(text, h.shown)
	}
	return text
}

// Dump says what is in a value, field by field. Of times and durations it says whether they are
// zero; documents have their fields in order.
func Dump(v any) string {
	var b strings.Builder
	dump(&b, reflect.ValueOf(v), 0)
	return Scrubbed(b.String())
}

func dump(b *strings.Builder, v reflect.Value, depth int) {
	if !v.IsValid() {
		b.WriteString("nil")
		return
	}
	if depth > 12 {
		b.WriteString("...")
		return
	}
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case time.Duration:
			fmt.Fprintf(b, "duration(%t)", x > 0)
			return
		case time.Time:
			fmt.Fprintf(b, "time(%t)", !x.IsZero())
			return
		case error:
			if v.Kind() == reflect.Pointer && v.IsNil() {
				break
			}
			fmt.Fprintf(b, "%T %q", x, x.Error())
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		if v.Kind() == reflect.Pointer {
			b.WriteString("&")
		}
		dump(b, v.Elem(), depth+1)
	case reflect.Struct:
		fmt.Fprintf(b, "%s{", v.Type())
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			fmt.Fprintf(b, "%s:", f.Name)
			if f.Name == "RequestID" || f.Name == "ServerConnectionID" || f.Name == "ServerConnectionID64" ||
				f.Name == "DurationNanos" {
				fmt.Fprintf(b, "(%t) ", !v.Field(i).IsZero())
				continue
			}
			dump(b, v.Field(i), depth+1)
			b.WriteString(" ")
		}
		b.WriteString("}")
	case reflect.Slice:
		if strings.HasSuffix(v.Type().String(), ".Raw") {
			if v.Len() == 0 {
				fmt.Fprintf(b, "Raw(nil=%t)", v.IsNil())
				return
			}
			document(b, bson.Raw(v.Bytes()))
			return
		}
		if v.IsNil() {
			fmt.Fprintf(b, "%s(nil)", v.Type())
			return
		}
		fallthrough
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			fmt.Fprintf(b, "%s(zero=%t)", v.Type(), v.IsZero())
			return
		}
		fmt.Fprintf(b, "%s[", v.Type())
		for i := range v.Len() {
			dump(b, v.Index(i), depth+1)
			b.WriteString(", ")
		}
		b.WriteString("]")
	case reflect.Map:
		fmt.Fprintf(b, "%s", v.Type())
		var parts []string
		for _, k := range v.MapKeys() {
			var p strings.Builder
			dump(&p, k, depth+1)
			p.WriteString(": ")
			dump(&p, v.MapIndex(k), depth+1)
			parts = append(parts, p.String())
		}
		slices.Sort(parts)
		fmt.Fprint(b, parts)
	case reflect.String:
		fmt.Fprintf(b, "%s(%q)", v.Type(), v.String())
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		fmt.Fprintf(b, "%s(%t)", v.Type(), v.IsNil())
	default:
		fmt.Fprintf(b, "%s(%v)", v.Type(), v)
	}
}

// document prints a document with its keys in order: the first one first.
func document(b *strings.Builder, doc bson.Raw) {
	var parts []string
	for key, value := range doc.All() {
		text := key + ": "
		in, isDocument := value.Document()
		list, isArray := value.Array()
		switch n, _ := value.Int64(); {
		case slices.Contains(Varying, key) && !(value.Type == bson.TypeInt64 && n == 0):
			text += "?"
		case isDocument:
			text += inOrder(in)
		case isArray:
			var elements []string
			for _, e := range list.All() {
				if in, ok := e.Document(); ok {
					elements = append(elements, inOrder(in))
				} else {
					elements = append(elements, e.String())
				}
			}
			text += "[" + strings.Join(elements, ", ") + "]"
		default:
			text += value.String()
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 {
		slices.Sort(parts[1:])
	}
	b.WriteString("{" + strings.Join(parts, ", ") + "}")
}

func inOrder(doc bson.Raw) string {
	var b strings.Builder
	document(&b, doc)
	return b.String()
}
