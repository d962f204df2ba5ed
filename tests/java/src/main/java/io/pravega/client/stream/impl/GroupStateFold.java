package io.pravega.client.stream.impl;

import io.pravega.client.state.InitialUpdate;
import io.pravega.client.state.Revision;
import io.pravega.client.state.Update;
import io.pravega.client.state.impl.RevisionImpl;
import io.pravega.common.util.ByteArraySegment;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Folds updates of a reader group's state as readers do. Each line of the input is an update in hexadecimal, or an empty
 * one, after which another state begins; each line of the output is the state after an update, as readers compact it.
 *
 * <p>In the client's own package, for the state is no part of its interface.
 */
public final class GroupStateFold {
    private static final Revision ANY = RevisionImpl.fromString("s/_RGg/0.#epoch.0:0:0");

    private GroupStateFold() {
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        ReaderGroupState.ReaderGroupUpdateSerializer updates = new ReaderGroupState.ReaderGroupUpdateSerializer();
        ReaderGroupState.ReaderGroupInitSerializer states = new ReaderGroupState.ReaderGroupInitSerializer();
        ReaderGroupState state = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                state = null;
                continue;
            }
            byte[] bytes = HexFormat.of().parseHex(line);
            Update<ReaderGroupState> update = updates.deserialize(new ByteArraySegment(bytes));
            state = state == null
                    ? ((InitialUpdate<ReaderGroupState>) update).create("s/_RGg", ANY)
                    : update.applyTo(state, ANY);
            byte[] compact = states.serialize(new ReaderGroupState.CompactReaderGroupState(state)).getCopy();
            out.println(HexFormat.of().formatHex(compact));
        }
        out.flush();
    }
}
