// Package sdnotify says to the service manager that started this process how far it is, as sd_notify(3) does: systemd
// runs what comes after a service once that is ready.
package sdnotify

import (
	"log/slog"
	"net"
	"os"
)

// socket is the variable in which a service manager names its socket; a name that begins with @ is abstract.
const socket = "NOTIFY_SOCKET"

// Ready says that the process serves.
func Ready(log *slog.Logger) { tell(log, "READY=1") }

// Stopping says that the process has begun to end.
func Stopping(log *slog.Logger) { tell(log, "STOPPING=1") }

// tell sends a state. Without a service manager that listens it does nothing. A state that cannot be sent is logged:
// the manager will end a process that it holds for not ready.
func tell(log *slog.Logger, state string) {
	name := os.Getenv(socket)
	if name == "" {
		return
	}
	conn, err := net.Dial("unixgram", name)
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		log.Warn("the service manager was not notified", "state", state, socket, name, "err", err)
	}
}
