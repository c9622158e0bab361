// Package sdnotify says to the service manager that started this process how far it is, as sd_notify(3) does: systemd
// runs what comes after a service once that is ready.
package sdnotify

import (
	"log/slog"
	"net"
)

// Variable is where a service manager names its socket.
const Variable = "NOTIFY_SOCKET"

// Manager is a service manager.
type Manager struct {
	// Socket is the manager's; a name that begins with @ is abstract. "" is no manager, to which nothing is said.
	Socket string
	Log    *slog.Logger
}

// Ready says that the process serves.
func (m Manager) Ready() { m.send("READY=1") }

// Stopping says that the process has begun to end.
func (m Manager) Stopping() { m.send("STOPPING=1") }

// send sends a state. One that cannot be sent is logged: the manager will end a process that it holds for not ready.
func (m Manager) send(state string) {
	if m.Socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", m.Socket)
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		m.Log.Warn("the service manager was not notified", "state", state, Variable, m.Socket, "err", err)
	}
}
