package cursor

import "allium/bson"

// pipeline returns the array of stages: $changeStream with the point that the stream begins at, the
// user's stages, and the splitting of large events.
func (s *Stream) pipeline() []byte {
	start, dst := bson.BeginDocument(nil)
	n := 0
	stage := func(name string, fields func(dst []byte) []byte) {
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		inner, d := bson.BeginDocumentElement(d, name)
		dst = bson.EndDocument(bson.EndDocument(fields(d), inner), at)
		n++
	}
	stage("$changeStream", s.appendOptions)
	for v := range s.opts.Stages.Values() {
		dst = append(bson.AppendIndexHeader(dst, v.Type, n), v.Value...)
		n++
	}
	if s.opts.SplitLargeEvents {
		stage("$changeStreamSplitLargeEvent", func(dst []byte) []byte { return dst })
	}
	return bson.EndDocument(dst, start)
}

// appendOptions appends the fields of the $changeStream stage. What was asked for at first is sent
// as it was; a stream that resumes begins where it is (specification: Change Streams, "Resume
// Process").
func (s *Stream) appendOptions(dst []byte) []byte {
	o := &s.opts
	if o.FullDocument != "" {
		dst = bson.AppendString(dst, "fullDocument", o.FullDocument)
	}
	if o.FullDocumentBeforeChange != "" {
		dst = bson.AppendString(dst, "fullDocumentBeforeChange", o.FullDocumentBeforeChange)
	}
	resumeAfter, startAfter, at := o.ResumeAfter, o.StartAfter, o.StartAtOperationTime
	if s.opened {
		resumeAfter, startAfter, at = nil, nil, nil
		switch {
		case s.token != nil && o.StartAfter != nil && !s.returned:
			startAfter = s.token
		case s.token != nil:
			resumeAfter = s.token
		default:
			at = s.operationTime
		}
	}
	if resumeAfter != nil {
		dst = bson.AppendDocument(dst, "resumeAfter", resumeAfter)
	}
	if startAfter != nil {
		dst = bson.AppendDocument(dst, "startAfter", startAfter)
	}
	if at != nil {
		dst = bson.AppendTimestamp(dst, "startAtOperationTime", *at)
	}
	if o.Cluster {
		dst = bson.AppendBool(dst, "allChangesForCluster", true)
	}
	if o.ShowExpandedEvents {
		dst = bson.AppendBool(dst, "showExpandedEvents", true)
	}
	return dst
}
