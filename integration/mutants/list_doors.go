package main

// ofTheDoors are faults of what faces the network.
var ofTheDoors = []mutant{
	{
		name: "slow-reader-cut-although-it-moves", file: "gateway/api/pace/pace.go",
		old: "	if n > 0 {\n", new: "	if n > 1<<20 {\n",
		test: "TestConn",
	}, {
		name: "trickle-taken-for-ever", file: "gateway/api/pace/pace.go",
		old: "max(0, m.behind)+waited-l.Least", new: "max(0, m.behind)-l.Least",
		test: "TestConn",
	}, {
		name: "pause-forgives-nothing", file: "gateway/api/pace/pace.go",
		old: "		m.behind -= from.Sub(m.until)\n", new: "",
		test: "TestConn_manyMessages",
	}, {
		name: "deadline-from-outside-lost",
		file: "gateway/api/pace/conn.go",
		old:  "	c.look = look\n	return c.setLocked()\n",
		new:  "	c.look = look\n	return c.Conn.SetWriteDeadline(look)\n",
		test: "TestConn_deadlines",
	}, {
		name: "pong-behind-a-snapshot-not-waited-for", file: "gateway/api/ws/liveness.go",
		old: "l.lastSign.Add(l.wait + l.pace.Least(l.sent-l.received))", new: "l.lastSign.Add(l.wait)",
		test: "TestSlowReader",
	}, {
		name: "tick-written-message-by-message", file: "gateway/api/ws/together.go",
		old: "wait := c.hold.Load() &&", new: "wait := false &&",
		test: "TestTickInOneWrite",
	}, {
		name: "close-frame-kept-for-what-follows", file: "gateway/api/ws/together.go",
		old: " && b[0]&control == 0", new: "",
		test: "TestTogether",
	}, {
		name: "every-frame-a-sign-of-life", file: "gateway/api/ws/liveness.go",
		old: "	l.sent += int64(n)\n", new: "	l.sent += int64(n)\n	l.lastSign = time.Now()\n",
		test: "TestLife",
	}, {
		name: "compressed-body-decoded-as-it-comes", file: "gateway/api/httpapi/httpio/body.go",
		old: "	packed, err := k.readChunks(limited, limit)\n	if err != nil {\n" +
			"		return nil, bodyError(r, err)\n	}\n	in, free, err := decode(&chunkReader{k, packed, 0})\n",
		new:  "	in, free, err := decode(limited)\n",
		test: "gateway/api/httpapi TestBody_bombsThatWait",
	}, {
		name: "deadline-left-behind-a-body", file: "gateway/api/httpapi/bodypace.go",
		old: "	if b.ended {\n", new: "	if false {\n",
		test: "TestBody_longAnswer",
	}, {
		name: "slow-body-not-answered", file: "gateway/api/httpapi/httpio/errors.go",
		old: " && e.Code != http.StatusRequestTimeout {", new: " {",
		test: "gateway/api/httpapi TestBody_slow",
	}, {
		name: "override-by-a-link", file: "gateway/api/httpapi/httpio/endpoint.go",
		old: "	method, err := Method(r)\n", new: "	method, err := r.Method, error(nil)\n",
		test: "TestVerbs_Contains",
	}, {
		name: "slow-messages-not-counted", file: "gateway/live/held.go",
		old: "			sum.Sending += u.sendingBytes(e.mu.seq)\n", new: "",
		test: "TestHeld",
	}, {
		name: "newest-message-cut", file: "gateway/live/held.go",
		old: " && u.Seq < e.mu.seq", new: "",
		test: "TestCut_inVain",
	}, {
		name: "shared-message-cut", file: "gateway/live/held.go",
		old: " && u.inHistory != e.mu.ticks", new: "",
		test: "TestCut_inVain",
	},
}
