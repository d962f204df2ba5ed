package io.sluice.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.security.Principal;

/**
 * Says what the controller's own handler makes of a password file, which is the argument. Each line of the input is
 * the token of a caller, or a user and a resource with a tab between them; each answer begins with {@code > }.
 *
 * <p>The handler is not among the client's jars, so it is not named where the compiler would look for it.
 */
public final class PasswordFilePeer {
    private PasswordFilePeer() {
    }

    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        Class<?> kind = Class.forName("io.pravega.authplugin.basic.PasswordAuthHandler");
        Object handler = kind.getConstructor().newInstance();
        kind.getMethod("initialize", String.class).invoke(handler, arguments[0]);
        Method authenticate = kind.getMethod("authenticate", String.class);
        Method authorize = kind.getMethod("authorize", String.class, Principal.class);
        PrintStream out = new PrintStream(System.out, true, UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t");
            try {
                if (fields.length == 1) {
                    out.println("> " + ((Principal) authenticate.invoke(handler, line)).getName());
                } else {
                    Principal user = () -> fields[0];
                    out.println("> " + authorize.invoke(handler, fields[1], user));
                }
            } catch (InvocationTargetException refused) {
                out.println("> refused");
            }
        }
    }
}
