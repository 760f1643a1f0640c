package mtest

import "go.mongodb.org/mongo-driver/bson"

// A BatchIdentifier is the field of a reply that has the documents of a batch.
type BatchIdentifier string

// The fields.
const (
	FirstBatch BatchIdentifier = "firstBatch"
	NextBatch  BatchIdentifier = "nextBatch"
)

// A CommandError is the error of a command.
type CommandError struct {
	Code    int32
	Message string
	Name    string
	Labels  []string
}

// A WriteError is a write that is refused.
type WriteError struct {
	Index   int
	Code    int
	Message string
}

// A WriteConcernError is the error of a write concern.
type WriteConcernError struct {
	Name    string   `bson:"codeName"`
	Code    int      `bson:"code"`
	Message string   `bson:"errmsg"`
	Details bson.Raw `bson:"errInfo"`
}

// CreateCursorResponse returns a reply with a batch of a cursor. The number of the cursor is 0 with
// the last batch.
func CreateCursorResponse(cursorID int64, ns string, identifier BatchIdentifier, batch ...bson.D) bson.D {
	docs := bson.A{}
	for _, doc := range batch {
		docs = append(docs, doc)
	}
	return CreateSuccessResponse(bson.E{Key: "cursor", Value: bson.D{
		{Key: "id", Value: cursorID}, {Key: "ns", Value: ns}, {Key: string(identifier), Value: docs},
	}})
}

// CreateCommandErrorResponse returns the reply of a command that fails.
func CreateCommandErrorResponse(ce CommandError) bson.D {
	reply := bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: ce.Code}, {Key: "errmsg", Value: ce.Message},
		{Key: "codeName", Value: ce.Name}}
	if len(ce.Labels) > 0 {
		labels := bson.A{}
		for _, label := range ce.Labels {
			labels = append(labels, label)
		}
		reply = append(reply, bson.E{Key: "errorLabels", Value: labels})
	}
	return reply
}

// CreateWriteErrorsResponse returns the reply to writes some of which are refused.
func CreateWriteErrorsResponse(writeErrors ...WriteError) bson.D {
	errs := bson.A{}
	for _, we := range writeErrors {
		errs = append(errs, bson.D{{Key: "index", Value: we.Index}, {Key: "code", Value: we.Code},
			{Key: "errmsg", Value: we.Message}})
	}
	return CreateSuccessResponse(bson.E{Key: "writeErrors", Value: errs})
}

// CreateWriteConcernErrorResponse returns the reply to a write whose write concern was not met.
func CreateWriteConcernErrorResponse(wce WriteConcernError) bson.D {
	doc := bson.D{{Key: "code", Value: wce.Code}, {Key: "codeName", Value: wce.Name},
		{Key: "errmsg", Value: wce.Message}}
	if len(wce.Details) > 0 {
		doc = append(doc, bson.E{Key: "errInfo", Value: wce.Details})
	}
	return CreateSuccessResponse(bson.E{Key: "writeConcernError", Value: doc})
}

// CreateSuccessResponse returns the reply of a command that succeeds.
func CreateSuccessResponse(elems ...bson.E) bson.D {
	return append(bson.D{{Key: "ok", Value: 1}}, elems...)
}
