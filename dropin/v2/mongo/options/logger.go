package options

// A LogLevel is how much is logged.
type LogLevel int

// The levels.
const (
	// LogLevelInfo logs what is of interest.
	LogLevelInfo LogLevel = 1
	// LogLevelDebug logs everything.
	LogLevelDebug LogLevel = 2
)

// A LogComponent is a part of the driver that logs.
type LogComponent int

// The parts.
const (
	LogComponentAll             LogComponent = 0
	LogComponentCommand         LogComponent = 1
	LogComponentTopology        LogComponent = 2
	LogComponentServerSelection LogComponent = 3
	LogComponentConnection      LogComponent = 4
)

// A LogSink takes what is logged. The values are keys and values in turn.
type LogSink interface {
	Info(level int, message string, keysAndValues ...any)
	Error(err error, message string, keysAndValues ...any)
}

// LoggerOptions say what is logged, and where.
type LoggerOptions struct {
	ComponentLevels   map[LogComponent]LogLevel
	Sink              LogSink // nil for the standard error
	MaxDocumentLength uint    // how many bytes of a document are logged; 1000 by default
}

// Logger returns settings under which nothing is logged.
func Logger() *LoggerOptions {
	return &LoggerOptions{ComponentLevels: map[LogComponent]LogLevel{}}
}

// SetComponentLevel says how much a part logs.
func (opts *LoggerOptions) SetComponentLevel(component LogComponent, level LogLevel) *LoggerOptions {
	opts.ComponentLevels[component] = level
	return opts
}

// SetMaxDocumentLength says how many bytes of a document are logged.
func (opts *LoggerOptions) SetMaxDocumentLength(maxDocumentLength uint) *LoggerOptions {
	opts.MaxDocumentLength = maxDocumentLength
	return opts
}

// SetSink says where to.
func (opts *LoggerOptions) SetSink(sink LogSink) *LoggerOptions {
	opts.Sink = sink
	return opts
}
