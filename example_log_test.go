package allium_test

import (
	"context"
	"log"
	"log/slog"
	"os"

	"allium"
	"allium/mongotest"
)

// Commands and what is wrong with the deployment are logged. What a program sets wins over the
// environment: this one leaves out what a variable of the environment names, so that whoever runs
// it can ask for more, or for less.
func ExampleClientOptions_logLevels() {
	levels := map[allium.LogComponent]slog.Level{}
	for component, level := range map[allium.LogComponent]slog.Level{
		allium.LogCommand: slog.LevelDebug, allium.LogTopology: slog.LevelWarn,
		allium.LogServerSelection: slog.LevelWarn, allium.LogConnection: slog.LevelWarn,
	} {
		variable := map[allium.LogComponent]string{
			allium.LogCommand: "MONGODB_LOG_COMMAND", allium.LogTopology: "MONGODB_LOG_TOPOLOGY",
			allium.LogServerSelection: "MONGODB_LOG_SERVER_SELECTION", allium.LogConnection: "MONGODB_LOG_CONNECTION",
		}[component]
		if os.Getenv(variable) == "" && os.Getenv("MONGODB_LOG_ALL") == "" {
			levels[component] = level
		}
	}
	// An example prints the same every time: of each message only the text and the command.
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey || a.Key == "commandName" {
			return a
		}
		return slog.Attr{}
	}})

	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), allium.ClientOptions{Logger: slog.New(handler), LogLevels: levels})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	client.Close(context.Background())
	// Output:
	// msg="Command started" commandName=ping
	// msg="Command succeeded" commandName=ping
	// msg="Command started" commandName=endSessions
	// msg="Command succeeded" commandName=endSessions
}
