package randcmd

// The rules of commands that write.

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
)

// contents are the documents of c.
func (c *Checker) contents() (answer, error) {
	return c.all(d{e("find", "c"), e("hint", natural)})
}

// consistent is the rule that every index holds what the collection holds.
func (c *Checker) consistent(rule string) error {
	docs, err := c.contents()
	if err != nil {
		return err
	}
	hints, err := c.hints()
	if err != nil {
		return err
	}
	for _, h := range hints {
		cmd := d{e("find", "c"), e("hint", h)}
		got, err := c.all(cmd)
		if err != nil {
			return err
		}
		if err := same(rule, cmd, docs.sorted(), got.sorted()); err != nil {
			return err
		}
	}
	r, err := c.run(d{e("validate", "c"), e("full", true)})
	if err != nil {
		return err
	}
	if !r.Lookup("valid").AsBool() {
		return &brokenRule{rule, fmt.Sprintf("validate answers %v", r)}
	}
	return nil
}

// written runs a write, and returns its reply and what the collection holds then. Every index has
// to hold the same, by the rule of that name.
func (c *Checker) written(cmd d, rule string) (r bson.Raw, after answer, err error) {
	if r, err = c.run(cmd); err != nil {
		return nil, answer{}, err
	}
	if after, err = c.contents(); err != nil {
		return nil, answer{}, err
	}
	return r, after, c.consistent(rule)
}

// changed counts the documents that are not among those before.
func changed(before, after answer) (n int) {
	for _, v := range after.docs {
		if !slices.ContainsFunc(before.docs, v.Equal) {
			n++
		}
	}
	return n
}

func (c *Checker) checkUpdate(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	list, _ := get(cs.Command, "updates")
	updates, ok := list.(a)
	if !ok || len(updates) != 1 {
		_, err := c.run(cs.Command)
		return err
	}
	one, ok := updates[0].(d)
	if !ok {
		_, err := c.run(cs.Command)
		return err
	}
	q := filterOf(one, "q")
	before, err := c.contents()
	if err != nil {
		return err
	}
	found, err := c.all(d{e("find", "c"), e("filter", q), e("sort", d{e("_id", int32(1))})})
	if err != nil {
		return err
	}
	explained, err := c.run(d{e("explain", cs.Command)})
	if err != nil {
		return err
	}
	unchanged, err := c.contents()
	if err != nil {
		return err
	}
	if err := same("update: explain changes nothing", cs.Command, before, unchanged); err != nil {
		return err
	}
	r, after, err := c.written(cs.Command, "update: indexes")
	if err != nil {
		return err
	}
	x, failed := failure(r)
	if y, bad := failure(explained); bad && !failed {
		return &brokenRule{"update: explain", fmt.Sprintf("%s runs, but cannot be explained: %v", show(cs.Command), y)}
	}
	multi, _ := get(one, "multi")
	upsert, _ := get(one, "upsert")
	if failed && multi != true {
		return same("update: an error changes nothing ("+x.text+")", cs.Command, before, after)
	}
	if failed || !found.ok() || upsert == true && len(found.docs) == 0 {
		return nil
	}
	want := len(found.docs)
	if multi != true {
		want = min(want, 1)
	}
	n, _ := r.Lookup("n").AsInt64()
	modified, _ := r.Lookup("nModified").AsInt64()
	_, pipeline := one[1].Value.(a)
	// these count as modified whether they change anything or not
	loose := pipeline || strings.Contains(show(one), "$sort")
	if int(n) != want || !loose && int(modified) != changed(before, after) {
		return &brokenRule{"update: counts", fmt.Sprintf("%s answers %v, with %d found and %d changed",
			show(cs.Command), r, want, changed(before, after))}
	}
	if want == 0 || strings.Contains(show(one), "$currentDate") { // the time goes on
		return nil
	}
	return c.checkSingle(cs, one, q, found)
}

// checkSingle holds an update of the first document that is found against findAndModify.
func (c *Checker) checkSingle(cs Case, one, q d, found answer) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	id := bson.Raw(found.docs[0].Value).Lookup("_id")
	single := with(with(with(one, "q", nil), "multi", nil), "q", d{e("$and", a{d{e("_id", id)}, q})})
	r, err := c.run(d{e("update", "c"), e("updates", a{single})})
	if err != nil {
		return err
	}
	first, failed := failure(r)
	after, err := c.contents()
	if err != nil {
		return err
	}
	if err := c.setUp(cs); err != nil {
		return err
	}
	u, _ := get(one, "u")
	fam := d{e("findAndModify", "c"), e("query", q), e("sort", d{e("_id", int32(1))}), e("update", u), e("new", true)}
	if filters, ok := get(one, "arrayFilters"); ok {
		fam = append(fam, e("arrayFilters", filters))
	}
	if r, err = c.run(fam); err != nil {
		return err
	}
	second, failed2 := failure(r)
	if failed != failed2 || first.code != second.code {
		return &brokenRule{"findAndModify: as update", fmt.Sprintf("%s: %v, the update: %v", show(fam), second, first)}
	}
	if failed {
		return nil
	}
	got, err := c.contents()
	if err != nil {
		return err
	}
	if err := same("findAndModify: as update", fam, after, got); err != nil {
		return err
	}
	doc := r.Lookup("value")
	if !slices.ContainsFunc(got.docs, doc.Equal) {
		return &brokenRule{"findAndModify: value", fmt.Sprintf("%s answers %v, which is not in %v", show(fam), r, got)}
	}
	return nil
}

func (c *Checker) checkDelete(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	list, _ := get(cs.Command, "deletes")
	deletes, ok := list.(a)
	if !ok || len(deletes) != 1 {
		_, err := c.run(cs.Command)
		return err
	}
	one, _ := deletes[0].(d)
	found, err := c.all(d{e("find", "c"), e("filter", filterOf(one, "q"))})
	if err != nil {
		return err
	}
	before, err := c.contents()
	if err != nil {
		return err
	}
	r, after, err := c.written(cs.Command, "delete: indexes")
	if err != nil {
		return err
	}
	if _, failed := failure(r); failed || !found.ok() {
		return nil
	}
	want := len(found.docs)
	if limit, _ := get(one, "limit"); limit == int32(1) {
		want = min(want, 1)
	}
	if n, _ := r.Lookup("n").AsInt64(); int(n) != want || len(before.docs)-len(after.docs) != want {
		return &brokenRule{"delete: counts",
			fmt.Sprintf("%s answers %v, with %v found; %v are left", show(cs.Command), r, found, after)}
	}
	return nil
}

// checkFindAndModify holds findAndModify against the find of the document that it is to change.
func (c *Checker) checkFindAndModify(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	before, err := c.contents()
	if err != nil {
		return err
	}
	explained, err := c.run(d{e("explain", cs.Command)})
	if err != nil {
		return err
	}
	r, after, err := c.written(cs.Command, "findAndModify: indexes")
	if err != nil {
		return err
	}
	if x, failed := failure(r); failed {
		if y, bad := failure(explained); bad && y.code != x.code {
			return &brokenRule{"findAndModify: explain",
				fmt.Sprintf("%s fails with %v, explained it is %v", show(cs.Command), x, y)}
		}
		return nil // a projection fails when the document has been written
	}
	if y, bad := failure(explained); bad {
		return &brokenRule{"findAndModify: explain",
			fmt.Sprintf("%s runs, but cannot be explained: %v", show(cs.Command), y)}
	}
	n, _ := r.Lookup("lastErrorObject", "n").AsInt64()
	remove, _ := get(cs.Command, "remove")
	if gone := len(before.docs) - len(after.docs); remove == true && gone != int(n) ||
		remove != true && changed(before, after) > 1 {
		return &brokenRule{"findAndModify: counts",
			fmt.Sprintf("%s answers %v and leaves %v of %v", show(cs.Command), r, after, before)}
	}
	return nil
}
