package main

import (
	"fmt"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// messages prints what the parts of messages are read and appended as: whole ones, cut ones, and
// bytes of no sense.
func messages() {
	doc := bsoncore.NewDocumentBuilder().AppendInt32("a", 1).Build()
	sequence := append([]byte{29, 0, 0, 0, 'x', 0}, append(append([]byte{}, doc...), doc[:11]...)...)
	inputs := map[string][]byte{
		"nil": nil, "document": doc, "two documents": append(append([]byte{}, doc...), doc...),
		"sequence":                 append([]byte{30, 0, 0, 0, 'x', 0}, append(append([]byte{}, doc...), doc...)...),
		"sequence that ends early": sequence, "empty sequence": {6, 0, 0, 0, 'x', 0, 7},
		"sequence of a length that is too short": {3, 0, 0, 0, 'x', 0, 7},
		"negative length":                        {255, 255, 255, 255, 0, 0},
		"sequence without a name":                {6, 0, 0, 0, 'x', 'y'},
		"more to come": wiremessage.AppendMsgFlags(wiremessage.AppendHeader(nil, 20, 1, 2, wiremessage.OpMsg),
			wiremessage.MoreToCome|wiremessage.ChecksumPresent),
		"query":  wiremessage.AppendQueryFlags(wiremessage.AppendHeader(nil, 20, 1, 2, wiremessage.OpQuery), 2),
		"header": wiremessage.AppendHeader(nil, 16, -1, 2, wiremessage.OpMsg),
		"text":   []byte("a.b\x00c"), "no end": []byte("a.b"),
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		b := make([]byte, random.IntN(30))
		for j := range b {
			b[j] = byte(random.IntN(8))
		}
		inputs[fmt.Sprint("random ", i)] = b
	}
	for name, in := range inputs {
		for cut := 0; cut <= len(in); cut += 1 + len(in)/5 {
			part := in[cut:]
			read := func(what string, values ...any) {
				say(fmt.Sprintf("wiremessage %s %s %d", name, what, cut), values...)
			}
			read("ReadQueryFlags", parts(wiremessage.ReadQueryFlags(part))...)
			read("ReadQueryFullCollectionName", parts(wiremessage.ReadQueryFullCollectionName(part))...)
			read("ReadQueryNumberToSkip", parts(wiremessage.ReadQueryNumberToSkip(part))...)
			read("ReadQueryNumberToReturn", parts(wiremessage.ReadQueryNumberToReturn(part))...)
			read("ReadQueryQuery", parts(wiremessage.ReadQueryQuery(part))...)
			read("ReadQueryReturnFieldsSelector", parts(wiremessage.ReadQueryReturnFieldsSelector(part))...)
			read("ReadReplyFlags", parts(wiremessage.ReadReplyFlags(part))...)
			read("ReadReplyCursorID", parts(wiremessage.ReadReplyCursorID(part))...)
			read("ReadReplyStartingFrom", parts(wiremessage.ReadReplyStartingFrom(part))...)
			read("ReadReplyNumberReturned", parts(wiremessage.ReadReplyNumberReturned(part))...)
			read("ReadReplyDocuments", parts(wiremessage.ReadReplyDocuments(part))...)
			read("ReadReplyDocument", parts(wiremessage.ReadReplyDocument(part))...)
			read("ReadKillCursorsZero", parts(wiremessage.ReadKillCursorsZero(part))...)
			read("ReadKillCursorsNumberIDs", parts(wiremessage.ReadKillCursorsNumberIDs(part))...)
			read("ReadKillCursorsCursorIDs of 0", parts(wiremessage.ReadKillCursorsCursorIDs(part, 0))...)
			read("ReadKillCursorsCursorIDs of 1", parts(wiremessage.ReadKillCursorsCursorIDs(part, 1))...)
			read("ReadKillCursorsCursorIDs of 2", parts(wiremessage.ReadKillCursorsCursorIDs(part, 2))...)
			read("ReadKillCursorsCursorIDs of 5", parts(wiremessage.ReadKillCursorsCursorIDs(part, 5))...)
			read("IsMsgMoreToCome", parts(wiremessage.IsMsgMoreToCome(part))...)
			read("ReadMsgFlags", parts(wiremessage.ReadMsgFlags(part))...)
			read("ReadMsgSectionType", parts(wiremessage.ReadMsgSectionType(part))...)
			read("ReadMsgSectionSingleDocument", parts(wiremessage.ReadMsgSectionSingleDocument(part))...)
			read("ReadMsgSectionDocumentSequence", parts(wiremessage.ReadMsgSectionDocumentSequence(part))...)
			read("ReadMsgSectionRawDocumentSequence", parts(wiremessage.ReadMsgSectionRawDocumentSequence(part))...)
			read("ReadMsgChecksum", parts(wiremessage.ReadMsgChecksum(part))...)
			read("ReadHeader", parts(wiremessage.ReadHeader(part))...)
			read("ReadCompressedOriginalOpCode", parts(wiremessage.ReadCompressedOriginalOpCode(part))...)
			read("ReadCompressedUncompressedSize", parts(wiremessage.ReadCompressedUncompressedSize(part))...)
			read("ReadCompressedCompressorID", parts(wiremessage.ReadCompressedCompressorID(part))...)
		}
	}
	for i := range 40 {
		say(fmt.Sprint("wiremessage names ", i), wiremessage.OpCode(i), wiremessage.OpCode(2000+i),
			wiremessage.CompressorID(i),
			wiremessage.QueryFlag(i*7), wiremessage.ReplyFlag(i))
	}
	b := []byte{9}
	b = wiremessage.AppendQueryFlags(b, 16)
	b = wiremessage.AppendQueryFullCollectionName(b, "a.b")
	b = wiremessage.AppendQueryNumberToSkip(b, 23)
	b = wiremessage.AppendQueryNumberToReturn(b, 25)
	b = wiremessage.AppendReplyFlags(b, 16)
	b = wiremessage.AppendReplyCursorID(b, 19)
	b = wiremessage.AppendReplyStartingFrom(b, 23)
	b = wiremessage.AppendReplyNumberReturned(b, 25)
	b = wiremessage.AppendGetMoreZero(b)
	b = wiremessage.AppendGetMoreFullCollectionName(b, "a.b")
	b = wiremessage.AppendGetMoreNumberToReturn(b, 27)
	b = wiremessage.AppendGetMoreCursorID(b, 21)
	b = wiremessage.AppendKillCursorsZero(b)
	b = wiremessage.AppendKillCursorsNumberIDs(b, 26)
	b = wiremessage.AppendKillCursorsCursorIDs(b, []int64{1, -1})
	b = wiremessage.AppendMsgFlags(b, 14)
	b = wiremessage.AppendMsgSectionType(b, 20)
	b = wiremessage.AppendHeader(b, 12, 12, 12, 12)
	b = wiremessage.AppendCompressedOriginalOpCode(b, 30)
	b = wiremessage.AppendCompressedUncompressedSize(b, 32)
	b = wiremessage.AppendCompressedCompressorID(b, 28)
	b = wiremessage.AppendCompressedCompressedMessage(b, []byte{1, 2})
	index, b := wiremessage.AppendHeaderStart(b, 4, 5, wiremessage.OpCompressed)
	say("wiremessage appended", index, fmt.Sprintf("%x", b))
}

// parts returns what a function returned as values to print.
func parts(values ...any) []any {
	for i, v := range values {
		values[i] = fmt.Sprintf("%T %[1]v", v)
	}
	return values
}
