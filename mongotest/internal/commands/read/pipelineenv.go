package read

// What a pipeline reads and writes beside the collection that it is about.

import (
	"bytes"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// pipelineEnv is what a pipeline sees of the deployment.
type pipelineEnv struct {
	run    *server.Running
	bypass bool
	// coll is the collation that views must have which further stages read, once strict is set.
	coll   *query.Collation
	strict bool
	// hint is the command's, for a $geoNear of this collection.
	hint   bson.RawValue
	hinted pipeline.Namespace
}

func (e *pipelineEnv) state() *store.State { return e.run.State }

func (e *pipelineEnv) Resolve(ns pipeline.Namespace) (pipeline.Namespace, []bson.Raw, error) {
	var stages []bson.Raw
	for range pipeline.MaxViewDepth + 1 { // the last round finds a collection
		c := e.state().Coll(ns.String())
		if c == nil || !c.View {
			return ns, stages, nil
		}
		if e.strict && len(stages) == 0 && !c.Collation.Same(e.coll) {
			return ns, nil, srverr.New(srverr.OptionNotSupportedOnView, "Cannot override a view's default collation")
		}
		on, _ := c.Raw.Lookup("viewOn").StringValue()
		list, err := pipeline.StagesOf(c.Raw.Lookup("pipeline"))
		if err != nil {
			return ns, nil, err
		}
		stages = append(list, stages...)
		ns.Coll = on
		if len(list) > 0 && list[0].Lookup("$collStats").Type != 0 {
			return ns, stages, nil // it is about what the view is on, be that a view
		}
	}
	return ns, nil, pipeline.ErrViewDepth()
}

// checkViews refuses views of another collation among what further stages read, before there is a
// document for them.
func (e *pipelineEnv) checkViews(ns pipeline.Namespace, stages []bson.Raw) error {
	return pipeline.Walk(ns, stages, func(s pipeline.Stage) error {
		from, ok := s.Reads()
		if !ok {
			return nil
		}
		if c := e.state().Coll(from.String()); c == nil || !c.View {
			return nil
		}
		_, _, err := e.Resolve(from)
		return err
	})
}

func (e *pipelineEnv) Find(ns pipeline.Namespace, filter *query.Filter) (pipeline.Iterator, error) {
	if series.NamesBuckets(ns.Coll) { // once there, the buckets are part of the state
		e.run.State = e.run.Request.ShowBuckets(e.run.State, ns.String())
	}
	c := e.state().Coll(ns.String())
	if c == nil {
		return pipeline.FromSlice(nil), nil
	}
	coll := c.Collation
	if filter != nil {
		coll = filter.Collation()
	}
	p, err := e.plan(&planner.Access{Coll: c, Filter: filter, Collation: coll}, ns)
	if err != nil {
		return nil, err
	}
	return p.Scan(e.run, c.NS), nil
}

// plan plans how to read a collection beside the pipeline's own, which may have written something
// by now: if the mongos's table is outdated, only this is done again.
func (e *pipelineEnv) plan(a *planner.Access, ns pipeline.Namespace) (*planner.Plan, error) {
	r := e.run.Request
	for {
		route, err := r.Route(a.Coll, ns.String())
		if err == nil {
			a.Table, a.Reach = route.Table, route.Reacher()
			var p *planner.Plan
			if p, err = a.Plan(); err == nil {
				return p, nil
			}
		}
		if err = r.Routing.Retarget(err); err != nil {
			return nil, err
		}
	}
}

func (e *pipelineEnv) Replace(ns pipeline.Namespace, docs []bson.Raw, option bson.Raw) error {
	r := e.run.Request
	// The collection is filled under another name, and gets its own at the end.
	if err := namespace.CheckRenamable(r.Version(), ns.String(), "target"); err != nil {
		return err
	}
	return r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns.String())
		var err error
		switch {
		case option != nil && c == nil:
			c, err = r.CreateSeries(tx, ns.String(), option)
		case option != nil && !c.TimeSeries:
			err = srverr.New(7268700, "Cannot create a time series collection from a non time-series collection or view: %s", ns)
		case option != nil && !bytes.Equal(c.Raw.Lookup("timeseries").Value, series.Complete(option)):
			err = srverr.New(7406103, "Time series options of $out do not match those of the existing collection: %s", ns)
		default:
			c, err = r.Writable(tx, ns.String(), true)
		}
		if err != nil {
			return err
		}
		if c.Capped {
			return srverr.New(17152, "namespace '%s' is capped so it can't be used for $out", ns)
		}
		if c, err = tx.Truncate(c); err != nil {
			return err
		}
		for _, doc := range docs {
			doc, err := r.Prepare(doc)
			if err != nil {
				return err
			}
			if err := r.Validate(c, doc, nil, e.bypass); err != nil {
				return err
			}
			if c, err = tx.Insert(c, doc); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *pipelineEnv) MergeKey(ns pipeline.Namespace, on []string,
	coll *query.Collation) (key []string, nulls bool, err error) {
	c := e.state().Coll(ns.String())
	if c != nil && c.TimeSeries {
		return nil, false, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a timeseries collection", ns)
	}
	if len(on) == 0 {
		if s := sharding.Of(c); s != nil { // _id names a document of one shard only
			on = slices.DeleteFunc(s.Paths(), func(path string) bool { return path == "_id" })
		}
		return append(on, "_id"), false, nil
	}
	if len(on) == 1 && on[0] == "_id" && (c == nil || coll.Same(c.Collation)) {
		return on, false, nil
	}
	if c != nil {
		for i := range c.Indexes() {
			ix := &c.Indexes()[i]
			if !ix.Unique || ix.Partial != nil || !coll.Same(ix.Collation) || len(ix.Fields) != len(on) {
				continue
			}
			all := true
			for _, f := range ix.Fields {
				all = all && f.Special == "" && slices.Contains(on, f.Path)
			}
			if all {
				return on, !ix.Sparse, nil
			}
		}
	}
	code := int32(51183)
	if e.run.Request.Routing != nil {
		code = 51190
	}
	return nil, false, srverr.New(code, "Cannot find index to verify that join fields will be unique")
}

func (e *pipelineEnv) Insert(ns pipeline.Namespace, doc bson.Raw) error {
	r := e.run.Request
	if err := namespace.CheckWritable(r.Version(), ns.String()); err != nil {
		return err
	}
	doc, err := r.Prepare(doc)
	if err != nil {
		return err
	}
	return r.Write(func(tx *store.Tx) error {
		c, err := r.Writable(tx, ns.String(), true)
		if err != nil {
			return err
		}
		route, err := r.Route(c, ns.String())
		if err != nil {
			return err
		}
		if s := route.Table; s != nil {
			shard, err := s.PlaceOf(ns.String(), doc)
			if err == nil {
				err = route.Reach(shard)
			}
			if err != nil {
				return err
			}
		}
		if err := r.Validate(c, doc, nil, e.bypass); err != nil {
			return err
		}
		_, err = tx.Insert(c, doc)
		return err
	})
}

func (e *pipelineEnv) Update(ns pipeline.Namespace, key bson.Raw, upsert bool,
	change func(old bson.Raw) (bson.Raw, error)) (matched bool, err error) {
	r := e.run.Request
	err = r.Write(func(tx *store.Tx) error {
		matched = false
		c, err := r.Writable(tx, ns.String(), false)
		if err != nil || c == nil {
			return err
		}
		op := server.Selection{Q: key}
		if err := op.Parse(r, ns.String(), c); err != nil {
			return err
		}
		if err := op.TargetMerge(r, c, upsert); err != nil {
			return err
		}
		return op.Candidates(r, c, func(rid string, doc bson.Raw, at int) (bool, error) {
			matched = true
			next, err := change(doc)
			if err != nil || bson.Equal(next, doc) {
				return false, err
			}
			if err := op.CheckShardKey(r, c, false, doc, next); err != nil {
				return false, err
			}
			next = bsondoc.Copy(next)
			if err := r.Validate(c, next, doc, e.bypass); err != nil {
				return false, err
			}
			_, err = tx.Update(c, rid, doc, next, true, nil)
			return false, err
		})
	})
	return matched, err
}

func (e *pipelineEnv) Stats(stage string, ns pipeline.Namespace, spec bson.Raw) (pipeline.Iterator, error) {
	if stage == "$changeStream" {
		s, err := e.openChangeStream(ns, spec)
		if err != nil {
			return nil, err
		}
		e.run.Stream = s
		return s, nil
	}
	if stage == "$listSearchIndexes" {
		return e.searchIndexes(ns, spec), nil
	}
	return e.stats(stage, ns, spec)
}

// LatestEnv returns what a pipeline that is only checked sees: the newest state.
func LatestEnv(r *server.Request) pipeline.Env {
	return &pipelineEnv{run: &server.Running{Request: r, State: r.Node.Store().Latest()}}
}
