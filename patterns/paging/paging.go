// Package paging reads the documents of a collection in pages, in any order, forwards and back:
//
//	page, err := paging.Find(ctx, goods, filter, paging.Options{Sort: sort, Token: token})
//
// A page begins at a position of an index, after the last document of the page before. So every
// page costs the same, documents that come and go move no others to another page, and every
// document has a place: those whose sort keys are missing, null or of mixed types as well, which
// conditions such as {price: {$gt: 20}} leave out. A document that is there all the time, with the
// same sort keys, is in one page exactly.
//
// # The index
//
// The sort is completed by _id. Its fields, with their directions or with all of them turned
// round, must be those of an index, which Index describes:
//
//	_, err := goods.CreateIndex(ctx, paging.Index(field.Desc(price)))
//
// Without it, Find fails with ErrNoIndex, and the error says which index to create. Fields that
// the filter compares with one value each, such as a tenant, should stand first in the sort: a
// page then reads the part of the index that has this value, and nothing behind it.
//
// # Tokens
//
// The token of a page has the sort keys of a document, and a hash of the query: that of another
// collection, filter, sort or collation is refused with ErrOtherQuery. It is text that can stand
// in a URL. Who has it can read the keys, and can make tokens that begin elsewhere in the same
// list, unless they are sealed with a key of the program's: see NewSeal.
//
// # What it does not do
//
//   - A document with an array in a sort key stands in the index once for each element, and has no
//     one place. A page that meets one fails with ErrArray. Leave them out by the filter
//     {tags: {$not: {$type: "array"}}}, or sort by other fields.
//   - A document whose sort keys change between two pages may be shown twice, or not at all.
//   - The index is read by the options min and max of the find command. Views, time series
//     collections and the Stable API in its strict mode do not have them, nor have servers of
//     other makers always: the error is the server's.
//   - Collation needs values of _id that are not texts, unless it is the collection's own. See
//     Options.Collation.
//   - In a sharded collection whose shard key is not _id, values of _id must be unique all the
//     same.
package paging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"allium"
	"allium/internal/option"
	"allium/mongoerr"
)

// The classes of errors, for errors.Is.
var (
	// ErrToken says that a token is damaged, was not made by this package, or is not sealed with
	// the program's keys. It comes from whoever sent the token: a server answers 400.
	ErrToken = errors.New("token is not valid")
	// ErrOtherQuery says that a token is from another collection, filter, sort or collation. It is
	// an ErrToken, too.
	ErrOtherQuery = fmt.Errorf("%w: it is from another query", ErrToken)
	// ErrNoIndex says that there is no index for the sort. The error has the server's, too.
	ErrNoIndex = errors.New("no index for the sort")
	// ErrArray says that a document has an array in a sort key.
	ErrArray = errors.New("array in a sort key")
)

// The numbers of documents of a page.
const (
	DefaultLimit = 20
	MaxLimit     = 1000
)

// Options are the options of Find. The zero value of a field means what its comment says.
type Options struct {
	// Sort is an ordered document of fields with 1 or -1, such as a bson.D or the result of
	// field.Asc. Nil: by _id, which completes every sort with the direction of the last field.
	Sort any
	// Limit is the number of documents of a page, 1 to MaxLimit. Zero: DefaultLimit.
	Limit int64
	// Token is the Next or Prev of another page, which may have had another limit or projection.
	// Empty: the first page.
	Token string
	// Projection selects the fields to return. A sort key is returned always, and must not be
	// excluded or computed.
	Projection any
	// Collation says how texts are compared. The index must have the same one. Under a collation
	// two texts can be equal, and _id no longer tells documents apart: it must not be a text then,
	// or have one within. A collation that the collection was created with need not be set here,
	// and has no such bound, since values of _id are unique under it.
	Collation *allium.Collation
	// Index is the index to use, as it was created: its Keys, if their directions are those of the
	// sort turned round, and its Name, if several have these keys. Zero: Index(Sort).
	Index allium.IndexModel
	// Seal seals the tokens. Nil: they are readable.
	Seal *Seal
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// A Page is some documents of a list, in the order of the sort.
type Page[T any] struct {
	Items []T
	// Next is the token of the page behind this one. It is empty if the list ends here.
	Next string
	// Prev is the token of the page in front of this one. It is empty if the list begins here. The
	// page is empty if all documents in front have been deleted meanwhile.
	Prev string
}

// Find returns the first page of the documents that match the filter or, with a token, the page
// behind or in front of another one. It sends one find command, in a rare case two.
//
// Documents that do not decode as T are left out, and the error is a mongoerr.DecodeErrors, which
// holds them: it comes with the page and its tokens. On any other error the page is empty.
func Find[T any](ctx context.Context, coll *allium.Collection[T], filter any, opts ...Options) (Page[T], error) {
	q, err := newQuery(coll, filter, option.Merge(opts))
	if err != nil {
		return Page[T]{}, fmt.Errorf("page of %s: %w", coll.Name(), err)
	}
	page, err := find(ctx, coll, q)
	if _, odd := err.(mongoerr.DecodeErrors); err != nil && !odd {
		return Page[T]{}, fmt.Errorf("page of %s: %w", coll.Name(), err)
	}
	return page, err
}

// find reads the page that the query's token leads to.
func find[T any](ctx context.Context, coll *allium.Collection[T], q *query) (Page[T], error) {
	p, n := q.from, int(q.Limit)
	rows, err := touched(ctx, coll, q)
	if err == nil {
		var others []row[T]
		// one more than a page says whether there is another
		others, err = read(ctx, coll, q, q.window(p), n+1-len(rows))
		rows = append(rows, others...)
	}
	if err != nil {
		return Page[T]{}, err
	}
	more := len(rows) > n
	rows = rows[:min(n, len(rows))]
	if p.before {
		slices.Reverse(rows)
	}
	page := Page[T]{Items: make([]T, 0, len(rows))}
	var odd mongoerr.DecodeErrors
	for _, r := range rows {
		if r.odd != nil {
			odd = append(odd, r.odd)
			continue
		}
		page.Items = append(page.Items, r.doc)
	}
	// Where a page was begun from, another one lies behind. Of an empty page that is where it
	// began, with the document there if it was left out here.
	behind, ahead := more, p.at != nil
	first, last := position{before: true}, position{}
	if len(rows) > 0 {
		first.at, last.at = rows[0].at, rows[len(rows)-1].at
	} else {
		first.at, first.touch = p.at, !p.touch
		last.at, last.touch = p.at, !p.touch
	}
	if p.before {
		behind, ahead = ahead, behind
	}
	if behind {
		if page.Next, err = q.token(last); err != nil {
			return Page[T]{}, err
		}
	}
	if ahead {
		if page.Prev, err = q.token(first); err != nil {
			return Page[T]{}, err
		}
	}
	if odd != nil {
		return page, odd
	}
	return page, nil
}
