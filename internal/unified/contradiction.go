package unified

// contradictions are tests that no driver can pass which does what their specification's text says,
// by the descriptions of file and test, with the reason. They are skipped with it.
var contradictions = map[[2]string]string{
	{"runCursorCommand", "Non-tailable cursor iteration timeoutMS is refreshed for getMore if timeoutMode is iteration - failure"}: getMoreIsInTime,
	{"runCursorCommand", "Tailable cursor iteration timeoutMS is refreshed for getMore - failure"}:                                 getMoreIsInTime,
	{"runCursorCommand", "Tailable cursor awaitData iteration timeoutMS is refreshed for getMore - failure"}: "it sets no timeoutMS anywhere, but wants a " +
		"maxTimeMS and a timeout of 60 ms",
}

const getMoreIsInTime = "it wants a getMore that takes 60 ms to exceed the timeoutMS of 100 ms, which the text (Client Side Operations " +
	"Timeout, \"Non-tailable cursors\" and \"Tailable cursors\") has begin anew with each iteration"

// ofOneMongos lists files, by their descriptions, that set a fail point with one client and meet it
// with another one, and say nothing of how many mongoses there are. Behind a load balancer, which
// leads each connection to the next mongos, the second client may miss it.
var ofOneMongos = []string{"timeoutMS"}
