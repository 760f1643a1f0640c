package cursor

import (
	"fmt"

	"allium/bson"
	"allium/internal/wire"
)

// splitEvent is an event of which some fragments have come.
type splitEvent struct {
	doc  []byte // the elements so far, behind room for the length
	next int64  // the fragments that have come
}

// maxSplitEvent is the size of the largest event that is joined. The three parts of an event that
// can be large, fullDocument, fullDocumentBeforeChange and updateDescription, have up to 16 MiB
// each; what a pipeline adds is left as much room again, and more. A server that goes on and on
// must not take the program's memory.
const maxSplitEvent = 128 << 20

// join adds a fragment. It returns the event when it is whole, at once if raw was not split, and
// else nil.
func (e *splitEvent) join(raw bson.Raw) (bson.Raw, error) {
	fragment, ok := raw.Lookup("splitEvent").Document()
	if !ok {
		if e.next != 0 {
			return nil, fmt.Errorf("server sent %d fragments of an event and not the rest", e.next)
		}
		return raw, nil
	}
	n, _ := fragment.Lookup("fragment").AsInt64()
	of, _ := fragment.Lookup("of").AsInt64()
	if n != e.next+1 || n > of {
		return nil, fmt.Errorf("server sent fragment %d of %d of an event after fragment %d", n, of, e.next)
	}
	if e.next == 0 {
		_, e.doc = bson.BeginDocument(nil)
	}
	e.next = n
	if err := wire.CheckDocument(raw, 1); err != nil {
		return nil, fmt.Errorf("fragment of an event is malformed: %w", err)
	}
	for key, v := range raw.All() {
		if len(e.doc)+len(key)+len(v.Value) > maxSplitEvent {
			*e = splitEvent{}
			return nil, fmt.Errorf("server sent more than %d MiB of fragments of one event", maxSplitEvent>>20)
		}
		if key == "splitEvent" || key == "_id" && n < of {
			continue
		}
		e.doc = bson.AppendRawValue(e.doc, key, v)
	}
	if n < of {
		return nil, nil
	}
	whole := bson.EndDocument(e.doc, 0)
	*e = splitEvent{}
	return whole, nil
}
