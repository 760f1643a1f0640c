package read

import (
	"iter"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
)

// Search answers a stage that searches. An index that does not exist finds nothing.
func (e *pipelineEnv) Search(stage string, ns pipeline.Namespace, spec bson.Raw,
	step func(n int)) (iter.Seq2[bson.Raw, bson.Raw], bson.Raw, error) {
	nothing := func(func(doc, meta bson.Raw) bool) {}
	none := bsondoc.Of("count", bsondoc.Of("total", int64(0)))
	c := e.state().Coll(ns.String())
	if c == nil { // nobody is asked
		return nothing, nil, nil
	}
	if err := e.run.Request.Node.Config().Search.Check(stage, spec); err != nil {
		return nothing, none, err
	}
	name, given := spec.Lookup("index").StringValue()
	if !given {
		name = "default"
	}
	n := e.run.Request.Node
	answer, err := n.Config().Search.Answer(c.UUID, name, n.Data().Clock.Now())
	if answer == nil || err != nil {
		return nothing, none, err
	}
	return answer(stage, spec, func(coll string) iter.Seq2[bson.Raw, error] {
		from := ns
		if coll != "" {
			from.Coll = coll
		}
		return e.documents(from)
	}, step)
}

// documents yields the documents of a collection.
func (e *pipelineEnv) documents(ns pipeline.Namespace) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		it, err := e.Find(ns, nil)
		if err != nil {
			yield(nil, err)
			return
		}
		defer it.Close()
		for {
			doc, err := it.Next()
			if doc == nil && err == nil || !yield(doc, err) || err != nil {
				return
			}
		}
	}
}
