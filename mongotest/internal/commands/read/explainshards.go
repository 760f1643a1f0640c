package read

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/server"
)

// What a mongos explains: to which shards it sends a command, and what each of them explains of it.

// onShards appends the explanation of a mongos.
func (p *explanation) onShards(r *server.Request, dst []byte, execute bool) ([]byte, error) {
	route, err := r.Route(p.coll, p.q.ns)
	if err != nil {
		return dst, err
	}
	s := route.Table
	if s == nil && p.pipeline {
		return p.append(r, dst, execute) // the shard's, as it is
	}
	if s != nil {
		r.Routing.Targeted(s.Target(p.op.Filter, p.op.Coll == nil))
	}
	if p.pipeline {
		return p.splitPipeline(r, dst, execute)
	}
	shards := r.Routing.Reached()
	plans, err := p.plans(r, shards, s != nil)
	if err != nil {
		return dst, err
	}
	stage := p.mongosStage(len(shards))
	d := bsondoc.Builder{B: dst}
	d.Doc("queryPlanner", bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendInt32(d.B, "mongosPlannerVersion", 1)
		d.Doc("winningPlan", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("stage", stage)
			eachShard(d, plans, func(i int, d *bsondoc.Builder) {
				d.Str("shardName", server.ShardName(shards[i])).Str("connectionString",
					r.Node.Data().ShardHost(shards[i]))
				d.B = appendServerInfo(r, d.B)
				d.B = plans[i].appendPlan(r, d.B)
			})
		}))
	}))
	if execute {
		sum := explained{ran: &planner.Stage{}} // of all shards
		for _, x := range plans {
			if err := x.run(r); err != nil {
				return dst, err
			}
			sum.n += x.n
			sum.ran.Inputs = append(sum.ran.Inputs, x.ran)
		}
		d.Doc("executionStats", bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = sum.appendFigures(d.B)
			d.Doc("executionStages", bsondoc.Build(func(d *bsondoc.Builder) {
				d.Str("stage", stage)
				d.B = sum.appendFigures(d.B)
				d.B = bson.AppendInt64(d.B, "totalChildMillis", 0)
				eachShard(d, plans, func(i int, d *bsondoc.Builder) {
					d.Str("shardName", server.ShardName(shards[i])).Flag("executionSuccess", true)
					d.Doc("executionStages", bsondoc.Build(func(d *bsondoc.Builder) {
						d.B = plans[i].ran.Append(appendCached(r, d.B, plans[i].plan.Trial, 0), sortLimit(r), true)
					}))
				})
			}))
		}))
	}
	return d.B, nil
}

// plans returns the plan of each shard. Where the mongos skips documents, the shards have to find
// them as well.
func (p *explanation) plans(r *server.Request, shards []int, sharded bool) (list []*explained, err error) {
	own := *p
	target := *p.explainTarget
	own.explainTarget = &target
	if len(shards) > 1 && target.q.skip > 0 {
		if target.q.limit > 0 {
			target.q.limit += target.q.skip
		}
		target.q.skip = 0
	}
	for _, i := range shards {
		var only []int
		if sharded {
			only = []int{i}
		}
		x, err := own.plan(r, only...)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

// mongosStage is what a mongos does with the answers of some shards.
func (p *explanation) mongosStage(shards int) string {
	switch {
	case p.writes:
		return "SHARD_WRITE"
	case shards == 1:
		return "SINGLE_SHARD"
	case len(p.q.sort) > 5:
		return "SHARD_MERGE_SORT"
	}
	return "SHARD_MERGE"
}

// eachShard appends the array "shards".
func eachShard(d *bsondoc.Builder, plans []*explained, f func(i int, d *bsondoc.Builder)) {
	at, b := bson.BeginArrayElement(d.B, "shards")
	for i := range plans {
		b = append(bson.AppendIndexHeader(b, bson.TypeEmbeddedDocument, i),
			bsondoc.Build(func(d *bsondoc.Builder) { f(i, d) })...)
	}
	d.B = bson.EndDocument(b, at)
}

// splitStages splits a pipeline into what shards do for themselves and what is made of their
// results. merger is where that is done; it is empty if there is nothing to split.
func splitStages(stages []bson.Raw) (shards, rest []bson.Raw, merger string) {
	stages = pipeline.Expanded(stages)
	for i, stage := range stages {
		s := pipeline.StageOf(pipeline.Namespace{}, stage)
		if s.PerDocument() {
			continue
		}
		shards, rest = stages[:i:i], stages[i:]
		switch s.Name {
		case "$sort", "$limit":
			shards = append(shards, stage)
			if s.Name == "$sort" { // merged by the sort key
				rest = rest[1:]
				if len(rest) > 0 && rest[0].Lookup("$limit").Type != 0 {
					shards = append(shards, rest[0])
				}
			}
		case "$group":
			shards = append(shards, stage)
			rest = append([]bson.Raw{mergingGroup(s.Spec.Value)}, rest[1:]...)
		}
		break
	}
	if shards == nil && rest == nil {
		shards = stages
	}
	merger = "mongos"
	for _, stage := range rest {
		if s := pipeline.StageOf(pipeline.Namespace{}, stage); s.OnPrimaryShard() {
			merger = "primaryShard"
		}
	}
	return shards, rest, merger
}

// mergingGroup is the $group that merges what shards have grouped.
func mergingGroup(spec bson.Raw) bson.Raw {
	return bsondoc.Of("$group", bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("_id", "$$ROOT._id")
		for k, v := range spec.All() {
			if k == "_id" {
				continue
			}
			doc, _ := v.Document()
			name, _ := bsondoc.FirstElement(doc)
			if name == "$count" {
				name = "$sum"
			}
			d.Doc(k, bsondoc.Of(name, "$$ROOT."+k))
		}
		d.Flag("$doingMerge", true)
	}))
}

func appendStages(dst []byte, key string, stages []pipeline.ShownStage) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, stage := range stages {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), stage.Doc...)
	}
	return bson.EndDocument(dst, at)
}

// splitPipeline appends the explanation of a pipeline on a sharded collection.
func (p *explanation) splitPipeline(r *server.Request, dst []byte, execute bool) ([]byte, error) {
	shards := r.Routing.Reached()
	own := *p
	target := *p.explainTarget
	own.explainTarget = &target
	d := bsondoc.Builder{B: dst}
	if len(shards) == 1 {
		d.B = bson.AppendNull(d.B, "splitPipeline")
	} else {
		part, rest, merger := splitStages(p.rest)
		if p.nearest { // merged by the distance
			part, rest = nil, p.rest
			if len(rest) > 0 && rest[0].Lookup("$limit").Type != 0 {
				part = rest[:1:1]
			}
		}
		target.rest = part
		sh := p.shower(r)
		d.Str("mergeType", merger)
		d.Doc("splitPipeline", bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = appendStages(d.B, "shardsPart", sh.Stages(slices.Concat(p.front, part)))
			d.B = appendStages(d.B, "mergerPart", sh.Stages(rest))
		}))
	}
	at, dst := bson.BeginDocumentElement(d.B, "shards")
	for _, i := range shards {
		one, b := bson.BeginDocumentElement(dst, server.ShardName(i))
		b = bson.AppendString(b, "host", r.Node.Data().ShardHost(i))
		b, err := own.append(r, b, execute, i)
		if err != nil {
			return dst, err
		}
		dst = bson.EndDocument(b, one)
	}
	return bson.EndDocument(dst, at), nil
}
