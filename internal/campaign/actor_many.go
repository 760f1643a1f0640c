package campaign

import (
	"context"
	"errors"
	"fmt"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

// herd is how many documents each actor for writes to many documents has.
const herd = 12

// change is an update of all documents of a herd.
type change struct {
	name    string
	actor   int
	outcome outcome
}

// heap is what an actor inserted at once and may have deleted at once.
type heap struct {
	name    string
	docs    map[string]outcome // of their inserts, by _id
	deleted outcome            // absent: nobody has tried
}

// many writes to many documents at once: it updates its herd, inserts a heap, or deletes one.
func (a *actor) many() {
	switch a.r.IntN(3) {
	case 0:
		a.updateMany()
	case 1:
		a.insertMany(a.r.IntN(2) == 0)
	default:
		h := a.insertMany(false)
		a.deleteMany(h)
	}
}

// updateMany notes its number in each document of the herd.
func (a *actor) updateMany() {
	c := &change{name: a.name(), actor: a.plan.ID, outcome: unknown}
	a.mu.Lock()
	a.hist.changes = append(a.hist.changes, c)
	number := len(a.hist.changes) - 1
	a.mu.Unlock()
	how := a.r.IntN(3)
	filter := bson.D{{Key: "herd", Value: a.plan.ID}}
	update := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}},
		{Key: "$push", Value: bson.D{{Key: "changes", Value: int32(number)}}}}
	err := a.do("update many", func(ctx context.Context) (err error) {
		var matched, modified int64
		switch how {
		case 0:
			var res allium.BulkWriteResult
			res, err = a.coll("herds").BulkWrite(ctx,
				[]allium.WriteModel{a.coll("herds").UpdateManyModel(filter, update)})
			matched, modified = res.MatchedCount, res.ModifiedCount
		case 1:
			var res allium.BulkWriteResult
			res, err = a.client().BulkWrite(ctx, []allium.WriteModel{a.coll("herds").UpdateManyModel(filter, update)})
			matched, modified = res.MatchedCount, res.ModifiedCount
		default:
			var res allium.UpdateResult
			res, err = a.coll("herds").UpdateMany(ctx, filter, update)
			matched, modified = res.MatchedCount, res.ModifiedCount
		}
		if err == nil && (matched != herd || modified != herd) {
			a.violation("many: an update of %d documents says that it matched %d and changed %d", herd, matched,
				modified)
		}
		return err
	})
	a.mu.Lock()
	if err == nil {
		c.outcome = acked
	}
	a.mu.Unlock()
	a.wrote(c.outcome)
}

// insertMany inserts a heap; if twice is set, two of its documents have the _id of one that is
// there before.
func (a *actor) insertMany(twice bool) *heap {
	h := &heap{name: a.name(), docs: map[string]outcome{}}
	n := 2 + a.r.IntN(8)
	unordered, first, second := a.r.IntN(2) == 0, a.r.IntN(n), a.r.IntN(n)
	var docs []bson.D
	var ids []string
	for i := range n {
		id := fmt.Sprintf("h-%d-%02d-%06d", i, a.plan.ID, a.seq)
		if twice && (i == first || i == second) {
			id = taken
		}
		ids = append(ids, id)
		docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "heap", Value: h.name}})
		if id != taken {
			h.docs[id] = unknown
		}
	}
	a.mu.Lock()
	a.hist.heaps = append(a.hist.heaps, h)
	a.mu.Unlock()
	var res allium.InsertManyResult
	err := a.do("insert many", func(ctx context.Context) (err error) {
		res, err = a.coll("heaps").InsertMany(ctx, docs, allium.InsertManyOptions{Unordered: unordered})
		return err
	})
	if err == nil && twice {
		a.violation("many: an insert of a document that is there was acknowledged")
	}
	refused := map[int]bool{}
	whole := err == nil // the servers have told all of it
	if e, ok := errors.AsType[*mongoerr.BulkWriteError](err); ok {
		whole = e.Err == nil && len(e.WriteConcernErrors) == 0
		for _, we := range e.WriteErrors {
			refused[we.Index] = true
			if we.Code == 11000 && ids[we.Index] != taken {
				a.violation("many: document %d of %d was inserted twice: %v", we.Index, n, err)
			}
			whole = whole && we.Code == 11000
		}
	}
	ended := false // an ordered insert ends with its first error
	a.mu.Lock()
	for _, id := range ids {
		switch {
		case id == taken:
			ended = ended || !unordered
		case !whole:
		case ended:
			h.docs[id] = absent
		default:
			h.docs[id] = acked
		}
	}
	a.mu.Unlock()
	if whole {
		for i, id := range ids {
			if _, told := res.InsertedIDs[i]; told != (id != taken && h.docs[id] == acked) {
				a.violation("many: the result lists document %d of %d, refused %v: %v", i, n, refused, told)
			}
		}
		a.wrote(acked)
	} else {
		a.wrote(unknown)
	}
	return h
}

// taken is the _id of a document that is there from the start.
const taken = "taken"

func (a *actor) deleteMany(h *heap) {
	a.mu.Lock()
	h.deleted = unknown
	acknowledged := 0
	for _, o := range h.docs {
		if o == acked {
			acknowledged++
		}
	}
	all := acknowledged == len(h.docs)
	a.mu.Unlock()
	err := a.do("delete many", func(ctx context.Context) error {
		res, err := a.coll("heaps").DeleteMany(ctx, bson.D{{Key: "heap", Value: h.name}})
		if err == nil && (res.DeletedCount > int64(len(h.docs)) || res.DeletedCount < int64(acknowledged)) {
			a.violation("many: a delete of %d documents, all acknowledged %v, says that it deleted %d", len(h.docs),
				all, res.DeletedCount)
		}
		return err
	})
	if err == nil {
		a.mu.Lock()
		h.deleted = acked
		a.mu.Unlock()
	}
	a.wrote(h.deleted)
}

// judgeChanges compares updates of many documents with what the documents note: one that was
// acknowledged is in each document, and whatever the caller was told, none is in one twice.
func judgeChanges(all []*change, herds map[int][][]int32) (found []string) {
	for actor, docs := range herds {
		for i, noted := range docs {
			times := map[int32]int{}
			for _, c := range noted {
				times[c]++
			}
			for number, c := range all {
				n := times[int32(number)]
				switch {
				case c.actor != actor && n > 0:
					found = append(found, fmt.Sprintf("%s changed a document of another herd", c.name))
				case c.actor != actor:
				case n > 1:
					found = append(found, fmt.Sprintf(
						"%s, %v: an update of many documents changed document %d %d times", c.name, c.outcome, i, n))
				case n == 0 && c.outcome == acked:
					found = append(found, fmt.Sprintf(
						"%s: an update of many documents was acknowledged, but document %d lacks it", c.name, i))
				}
			}
		}
	}
	return found
}

// judgeHeaps compares inserts and deletes of many documents with what is there.
func judgeHeaps(all []*heap, there map[string]bool) (found []string) {
	known := map[string]bool{taken: true}
	for _, h := range all {
		for id, o := range h.docs {
			known[id] = true
			switch {
			case o == acked && h.deleted == absent && !there[id]:
				found = append(found,
					fmt.Sprintf("%s: the acknowledged insert of %s, one of many, is missing", h.name, id))
			case o == acked && h.deleted == acked && there[id]:
				found = append(found,
					fmt.Sprintf("%s: a delete of many documents was acknowledged, but %s is there", h.name, id))
			case o == absent && there[id]:
				found = append(found, fmt.Sprintf(
					"%s: %s is there, although it comes after the error of an ordered insert", h.name, id))
			}
		}
	}
	for id := range there {
		if !known[id] {
			found = append(found, fmt.Sprintf("many: %s is there, which nobody inserted", id))
		}
	}
	return found
}
