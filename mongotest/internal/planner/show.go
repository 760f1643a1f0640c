package planner

// What explain and the profiler show of a plan.

import (
	"slices"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
)

// Summary is the short form of a plan: how it reads its documents.
func (s *Stage) Summary() string {
	var list []string
	var walk func(s *Stage)
	walk = func(s *Stage) {
		if len(s.Inputs) > 0 && s.Near == nil {
			for _, in := range s.Inputs {
				walk(in)
			}
			return
		}
		text := s.Name
		if text == "TEXT" {
			text = "IXSCAN"
		}
		if s.Index != nil && s.Name != "IDHACK" {
			text += " " + patternText(s.KeyPattern())
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	walk(s)
	return strings.Join(list, ", ")
}

// patternText shows a key pattern: numbers are whole, whatever type they have.
func patternText(pattern bson.Raw) string {
	return bsontext.Document(bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range pattern.All() {
			if n, exact := v.AsInt64(); exact && v.IsNumber() {
				v = bsondoc.Int64Value(n)
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	}))
}

// Append appends the elements of a stage and of those below it, as explain shows them: with
// figures, if they are wanted. sortLimit is how many bytes a sort may hold.
func (s *Stage) Append(dst []byte, sortLimit int64, figures bool) []byte {
	if s.isExpress() {
		return s.appendExpress(dst, figures)
	}
	dst = bson.AppendString(dst, "stage", s.Name)
	switch {
	case s.Name == "TEXT" || s.Name == "TEXT_MATCH" || s.Name == "IDHACK" || s.Filter == nil:
	default:
		dst = bson.AppendDocument(dst, "filter", s.Filter.Document())
	}
	if figures {
		eof := int32(0)
		if s.EOF {
			eof = 1
		}
		dst = bsondoc.Append(dst, "nReturned", int32(s.Advanced), "executionTimeMillisEstimate", int32(0), "works",
			int32(s.Works),
			"advanced", int32(s.Advanced), "needTime", int32(s.NeedTime), "needYield", int32(0), "saveState", int32(0),
			"restoreState", int32(0), "isEOF", eof)
	}
	dst = s.appendSpecific(dst, sortLimit, figures)
	if len(s.Inputs) == 1 {
		at, d := bson.BeginDocumentElement(dst, "inputStage")
		return bson.EndDocument(s.Inputs[0].Append(d, sortLimit, figures), at)
	}
	if len(s.Inputs) > 1 {
		list, d := bson.BeginArrayElement(dst, "inputStages")
		for i, in := range s.Inputs {
			at, one := bson.BeginDocument(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i))
			d = bson.EndDocument(in.Append(one, sortLimit, figures), at)
		}
		return bson.EndDocument(d, list)
	}
	return dst
}

// appendSpecific appends what only a stage of this kind has.
func (s *Stage) appendSpecific(dst []byte, sortLimit int64, figures bool) []byte {
	figure := func(name string, n int64) {
		if figures {
			dst = bson.AppendInt32(dst, name, int32(n))
		}
	}
	switch s.Name {
	case "LIMIT":
		dst = bson.AppendInt32(dst, "limitAmount", int32(s.N))
	case "SKIP":
		dst = bson.AppendInt32(dst, "skipAmount", int32(s.N))
	case "SORT":
		dst = bsondoc.Append(dst, "sortPattern", bsondoc.OrEmpty(s.Spec), "memLimit", int32(sortLimit))
		if s.N > 0 {
			dst = bson.AppendInt32(dst, "limitAmount", int32(s.N))
		}
		dst = bson.AppendString(dst, "type", s.Type)
		if figures {
			dst = bsondoc.Append(dst, "totalDataSizeSorted", int32(s.Bytes), "usedDisk", false)
		}
	case "SORT_MERGE":
		dst = bson.AppendDocument(dst, "sortPattern", bsondoc.OrEmpty(s.Spec))
		figure("dupsTested", s.Tested)
		figure("dupsDropped", s.Dropped)
	case "AND_SORTED":
		for i := range s.Inputs {
			n := int64(0)
			if s.failed != nil {
				n = s.failed[i]
			}
			figure("failedAnd_"+strconv.Itoa(i), n)
		}
	case "OR":
		figure("dupsTested", s.Tested)
		figure("dupsDropped", s.Dropped)
	case "FETCH":
		figure("docsExamined", s.Docs)
		figure("alreadyHasObj", s.Had)
	case "COLLSCAN", "CLUSTERED_IXSCAN":
		dst = bson.AppendString(dst, "direction", direction(s.Back))
		if s.First.Type != 0 {
			dst = bson.AppendRawValue(dst, "minRecord", s.First)
			dst = bson.AppendRawValue(dst, "maxRecord", s.Last)
		}
		figure("docsExamined", s.Docs)
	case "IDHACK":
		figure("keysExamined", s.Keys)
		figure("docsExamined", s.Docs)
	case "SHARDING_FILTER":
		figure("chunkSkips", s.Skipped)
	case "PROJECTION_DEFAULT", "PROJECTION_SIMPLE", "PROJECTION_COVERED":
		dst = bson.AppendDocument(dst, "transformBy", bsondoc.OrEmpty(s.Spec))
	case "COUNT", "RECORD_STORE_FAST_COUNT":
		figure("nCounted", s.Counted)
		figure("nSkipped", s.Skipped)
	case "UPDATE":
		figure("nMatched", s.Matched)
		figure("nWouldModify", s.Modified)
		figure("nWouldUpsert", s.Upserted)
	case "DELETE":
		figure("nWouldDelete", s.Matched)
	case "IXSCAN", "COUNT_SCAN", "DISTINCT_SCAN":
		dst = appendIndexScan(dst, s)
		figure("keysExamined", s.Keys)
		if s.Name == "IXSCAN" {
			figure("seeks", s.Seeks)
			figure("dupsTested", s.Tested)
			figure("dupsDropped", s.Dropped)
		}
	case nearSphere, nearPlane:
		dst = s.appendNear(dst, figures)
	case "TEXT":
		dst = appendText(dst, s)
	case "TEXT_MATCH":
		if s.Index != nil {
			dst = appendText(dst, s)
		}
		figure("docsRejected", s.Dropped)
	case "TEXT_OR":
		figure("docsExamined", s.Docs)
	}
	return dst
}

func direction(back bool) string {
	if back {
		return "backward"
	}
	return "forward"
}

// appendIndexScan appends which index a stage reads, and which part of it.
func appendIndexScan(dst []byte, s *Stage) []byte {
	ix := s.Index
	dst = bsondoc.Append(dst, "keyPattern", s.KeyPattern(), "indexName", ix.Name)
	if ix.Collation != nil {
		dst = bson.AppendDocument(dst, "collation", ix.Collation.Spec())
	}
	fields, arrays, multikey := s.ArrayPaths()
	dst = bson.AppendBool(dst, "isMultiKey", multikey || ix.Text != nil)
	if ix.Ordered() {
		at, paths := bson.BeginDocumentElement(dst, "multiKeyPaths")
		for i, k := range fields {
			paths = bsondoc.AppendStrings(paths, k, arrays[i])
		}
		dst = bson.EndDocument(paths, at)
	}
	dst = bsondoc.Append(dst, "isUnique", ix.Unique || ix.IsID, "isSparse", ix.Sparse || ix.Wild != nil,
		"isPartial", ix.Partial != nil, "indexVersion", int32(2))
	if s.Name != "COUNT_SCAN" {
		dst = bson.AppendString(dst, "direction", direction(s.Back))
	}
	if !ix.Ordered() {
		return bson.AppendDocument(dst, "indexBounds", bsondoc.OrEmpty(nil))
	}
	at, bounds := bson.BeginDocumentElement(dst, "indexBounds")
	switch {
	case s.Name == "COUNT_SCAN":
		first, last, firstIn, lastIn := s.Ends()
		bounds = bsondoc.Append(bounds, "startKey", first, "startKeyInclusive", firstIn, "endKey", last,
			"endKeyInclusive", lastIn)
	case s.Range != nil:
		first, last := s.Span()
		bounds = bsondoc.Append(bounds, "startKey", first, "endKey", last)
	default:
		names, lists := s.ShownBounds()
		for i, k := range names {
			bounds = bsondoc.AppendStrings(bounds, k, lists[i])
		}
	}
	return bson.EndDocument(bounds, at)
}
